#!/bin/sh
# How onelaunch-sys finds the library: by pkg-config (shared and static), in a folder; and what it says where there is none.
#
#   link_test.sh CARGO BUILD_FOLDER [FOLDER_OF_LIBPTHREADPOOL]
set -eu
cargo=$1 build=$2 pool=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "link_test: $*" >&2; exit 1; }
export CARGO_TARGET_DIR="$build/rust_links"
unset ONELAUNCH_LIB_DIR ONELAUNCH_STATIC PKG_CONFIG
"$here/cargo.sh" "$cargo" metadata --no-deps --format-version 1 >"$work/out" || { cat "$work/out"; exit 77; }

cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the installation failed"; }
lib=$(dirname "$(find "$work/prefix" -name libonelaunch.so | head -n 1)")

# run WHAT [VARIABLE=VALUE…]: builds and runs the twenty lines
run() {
    what=$1
    shift
    env "$@" "$here/cargo.sh" "$cargo" build --example rates >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$what: no program"; }
    LD_LIBRARY_PATH="$lib${pool:+:$pool}" "$CARGO_TARGET_DIR/debug/examples/rates" >"$work/out" || fail "$what: exit code $?"
    grep -q '^beta 0.26894143, decay 0.391[0-9]*, 1 launch$' "$work/out" || fail "$what printed: $(cat "$work/out")"
    linked=shared
    ldd "$CARGO_TARGET_DIR/debug/examples/rates" | grep -q libonelaunch || linked=static
    echo "$what: $linked"
}
# refused WHAT TEXT [VARIABLE=VALUE…]: the build fails and says so
refused() {
    what=$1 text=$2
    shift 2
    if env "$@" "$here/cargo.sh" "$cargo" build >"$work/log" 2>&1; then fail "$what: was built"; fi
    grep -q "onelaunch-sys: .*$text" "$work/log" || { cat "$work/log" >&2; fail "$what: expected \"$text\""; }
    echo "$what: refused"
}
is() { [ "$linked" = "$1" ] || fail "$what: the program is $linked"; }

export PKG_CONFIG_PATH="$lib/pkgconfig"
run "pkg-config"
is shared
run "pkg-config, static" ONELAUNCH_STATIC=1 "RUSTFLAGS=${pool:+-L$pool}"
is static
run "a folder of both" ONELAUNCH_LIB_DIR="$lib${pool:+:$pool}"
is shared
run "a folder of both, static" ONELAUNCH_LIB_DIR="$lib${pool:+:$pool}" ONELAUNCH_STATIC=1
is static
mkdir "$work/archive" "$work/none" && cp "$lib/libonelaunch.a" "$work/archive"
run "a folder of the archive" ONELAUNCH_LIB_DIR="$work/archive${pool:+:$pool}"
is static

refused "no package" "libonelaunch was not found: install it" PKG_CONFIG_PATH="$work/none" PKG_CONFIG_LIBDIR="$work/none"
refused "no pkg-config" "cannot be run" PKG_CONFIG="$work/none/pkg-config"
refused "an empty folder" "there is no libonelaunch.so and no libonelaunch.a in" ONELAUNCH_LIB_DIR="$work/none"
refused "no shared library" "there is no libonelaunch.so in" ONELAUNCH_LIB_DIR="$work/archive" ONELAUNCH_STATIC=0
refused "no folder" "which is no folder given by an absolute path" ONELAUNCH_LIB_DIR="archive"
refused "a wrong option" "expected 0 or 1" ONELAUNCH_STATIC=yes
mkdir "$work/other" && sed 's/^Version: .*/Version: 0.2.0/' "$lib/pkgconfig/onelaunch.pc" >"$work/other/onelaunch.pc"
refused "another version" "is version 0.2.0; this crate, 0.1.0, is for 0.1" PKG_CONFIG_PATH="$work/other"
