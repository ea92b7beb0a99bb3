#!/bin/sh
# Installs a build to a temporary prefix and builds a program outside the tree against it: by pkg-config, shared and static, and
# by CMake's find_package, shared and static; runs each.
#
#   install_test.sh BUILD_FOLDER CONSUMER_FOLDER C_COMPILER [FOLDER_OF_LIBPTHREADPOOL]
set -eu
build=$1 consumer=$2 cc=$3 pool=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install_test: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "the installation failed"; }
lib=$(dirname "$(find "$work/prefix" -name libonelaunch.so | head -n 1)")
[ -f "$lib/libonelaunch.a" ] || fail "no static library in $lib"
[ -f "$work/prefix/include/onelaunch.h" ] && [ -f "$work/prefix/include/onelaunch_gated_delta.h" ] || fail "the headers are not where they belong"

export PKG_CONFIG_PATH="$lib/pkgconfig"
export LD_LIBRARY_PATH="$lib${pool:+:$pool}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
flags() { pkg-config "$@" onelaunch; }                     # the .pc file finds its prefix from where it lies
[ "$(pkg-config --modversion onelaunch)" = "$(sed -n 's/^project(onelaunch VERSION \([0-9.]*\).*/\1/p' "$consumer/../../CMakeLists.txt")" ] ||
    fail "pkg-config gives another version than the project's"

run() {
    "$2" >"$work/out" 2>"$work/err" || fail "$1: exit code $?; $(cat "$work/err")"
    grep -q '0x1p-1 0x1p+0, 1 launch' "$work/out" || fail "$1 printed: $(cat "$work/out")"
    [ ! -s "$work/err" ] || fail "$1 wrote to stderr: $(cat "$work/err")"
    echo "$1: $(cat "$work/out")"
}

# shellcheck disable=SC2046  # flags are words
"$cc" -std=c11 -Wall -Werror -o "$work/shared" "$consumer/consumer.c" $(flags --cflags --libs) ${pool:+-Wl,-rpath-link,"$pool"}
run "pkg-config, shared" "$work/shared"
ldd "$work/shared" | grep -q "$lib/libonelaunch.so" || fail "the shared program does not use the installed library"

# The archive only: a folder with the .a and without the .so.
mkdir "$work/archive" && cp "$lib/libonelaunch.a" "$work/archive"
# shellcheck disable=SC2046
"$cc" -std=c11 -Wall -Werror -o "$work/static" "$consumer/consumer.c" -L"$work/archive" ${pool:+-L"$pool"} $(flags --cflags --libs --static | sed "s|-L[^ ]*/pkgconfig/[^ ]*||")
run "pkg-config --static" "$work/static"
if ldd "$work/static" | grep -q libonelaunch; then fail "the static program uses the shared library"; fi

outside() {
    cmake -S "$consumer" -B "$work/cmake" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
        ${pool:+-DCMAKE_EXE_LINKER_FLAGS="-L$pool -Wl,-rpath-link,$pool"} && cmake --build "$work/cmake"
}
outside >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log" >&2; fail "find_package did not lead to a program"; }
run "find_package" "$work/cmake/consumer"
run "find_package, static" "$work/cmake/consumer_static"

# Nothing that was installed names the place it was built in.
if grep -rlI "$build" "$work/prefix/lib" "$work/prefix/include" 2>/dev/null | grep .; then fail "the files above name the build folder"; fi
