#!/bin/sh
# Installs a build to a temporary prefix and builds clients of mlx-c's interface outside the tree against it by pkg-config: in C, in C++,
# and in Rust where there is a compiler; runs each.
#
#   mlxc_install.sh BUILD_FOLDER SOURCE_FOLDER C_COMPILER CXX_COMPILER [RUSTC [FOLDER_OF_LIBPTHREADPOOL]]
set -eu
build=$1 source=$2 cc=$3 cxx=$4 rustc=${5:-} pool=${6:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "mlxc_install: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "the installation failed"; }
library=$(find "$work/prefix" -name libonelaunch_mlxc.so | head -n 1)
[ -n "$library" ] || fail "no libonelaunch_mlxc.so was installed"
lib=$(dirname "$library")
[ -f "$work/prefix/include/onelaunch-mlxc/mlx/c/mlx.h" ] || fail "the header is not where it belongs"
export PKG_CONFIG_PATH="$lib/pkgconfig"
export LD_LIBRARY_PATH="$lib${pool:+:$pool}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
link="-Wl,-rpath-link,$lib${pool:+ -Wl,-rpath-link,$pool}"

run() {
    "$2" >"$work/out" 2>"$work/err" || fail "$1: exit code $?; $(cat "$work/out" "$work/err")"
    grep -q "$3" "$work/out" || fail "$1 printed: $(cat "$work/out")"
    [ ! -s "$work/err" ] || fail "$1 wrote to stderr: $(cat "$work/err")"
    echo "$1: $(tail -n 1 "$work/out")"
}

# shellcheck disable=SC2046,SC2086  # flags are words
"$cc" -std=c99 -Wall -Werror -o "$work/c" "$source/device_client.c" $(pkg-config --cflags --libs onelaunch-mlxc) $link
run "C" "$work/c" "exp(0) is 1"
ldd "$work/c" | grep -q "$library" || fail "the program does not use the installed library"
# shellcheck disable=SC2046,SC2086
"$cxx" -std=c++11 -Wall -Werror -o "$work/cxx" "$source/client_cxx.cc" $(pkg-config --cflags --libs onelaunch-mlxc) $link
run "C++" "$work/cxx" "equal bits"
if [ -n "$rustc" ]; then
    "$rustc" --edition 2021 -O -o "$work/rust" "$source/client.rs" -L "$lib" -l onelaunch_mlxc -C link-arg=-Wl,-rpath,"$lib" \
        ${pool:+-C link-arg=-Wl,-rpath-link,"$pool"} -C link-arg=-Wl,-rpath-link,"$lib"
    run "Rust" "$work/rust" "equal bits"
fi

# The archives only, by pkg-config; and find_package, shared and static.
mkdir "$work/archives" && cp "$lib"/*.a "$work/archives"
# shellcheck disable=SC2046
"$cc" -std=c99 -Wall -Werror -o "$work/static" "$source/device_client.c" $(pkg-config --cflags onelaunch-mlxc) -L"$work/archives" ${pool:+-L"$pool"} \
    $(pkg-config --libs --static onelaunch-mlxc | sed 's|-L[^ ]*/pkgconfig/[^ ]*||g')
run "C, static" "$work/static" "exp(0) is 1"
if ldd "$work/static" | grep -q libonelaunch; then fail "the static program uses a shared library"; fi
mkdir "$work/outside"
cat >"$work/outside/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES C)
find_package(onelaunch 0.1 REQUIRED)
foreach(library mlxc mlxc-static)
  add_executable(client_\${library} $source/device_client.c)
  target_link_libraries(client_\${library} PRIVATE onelaunch::\${library})
endforeach()
TEXT
{ cmake -S "$work/outside" -B "$work/cmake" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/prefix" \
    ${pool:+-DCMAKE_EXE_LINKER_FLAGS="-L$pool -Wl,-rpath-link,$pool"} && cmake --build "$work/cmake"; } >"$work/cmake.log" 2>&1 ||
    { cat "$work/cmake.log" >&2; fail "find_package did not lead to a program"; }
run "find_package" "$work/cmake/client_mlxc" "exp(0) is 1"
run "find_package, static" "$work/cmake/client_mlxc-static" "exp(0) is 1"

# The installed library finds its neighbour where both were moved to, and names no place it was built in.
mkdir "$work/moved" && cp -P "$lib"/libonelaunch* "$work/moved"
LD_LIBRARY_PATH="$work/moved${pool:+:$pool}" run "moved" "$work/c" "exp(0) is 1"
if grep -rlI "$build" "$work/prefix/lib" "$work/prefix/include" 2>/dev/null | grep .; then fail "the files above name the build folder"; fi
