# Cross-compiles for AArch64 with Debian's compiler; programs run under qemu-aarch64. -DAARCH64_SYSROOT=FOLDER holds the AArch64
# libraries (tests/aarch64_sysroot.sh makes it).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AARCH64_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${AARCH64_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${AARCH64_SYSROOT})
# gmp.h, which mpfr.h includes, is of one architecture; pkg-config does not name its folder.
set(CMAKE_C_FLAGS_INIT "-isystem ${AARCH64_SYSROOT}/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath-link,${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -Wl,-rpath-link,${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${AARCH64_SYSROOT})
