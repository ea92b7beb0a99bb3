#!/bin/sh
# The client in Rust, by rustc alone: built against the library of the build tree and run. 77 where there is no rustc.
#
#   mlxc_rust.sh RUSTC CLIENT.rs LIBRARY_FOLDER
set -eu
rustc=$1 client=$2 folder=$3
[ -n "$rustc" ] || { echo "mlxc_rust: no rustc on this machine: skipped"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$rustc" --version
"$rustc" --edition 2021 -D warnings -O -o "$work/client" "$client" -L "$folder" -l onelaunch_mlxc -C link-arg=-Wl,-rpath,"$folder"
"$work/client"
