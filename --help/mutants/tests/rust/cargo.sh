#!/bin/sh
# cargo in bindings/rust, without a network and without the user's settings; what it makes goes to CARGO_TARGET_DIR.
#
#   cargo.sh CARGO arguments…
#
# Exits with 77, and says why, where CARGO cannot be run or is older than the crates ask for.
cargo=$1
shift
cd "$(dirname "$0")/../../bindings/rust" || exit 1
PATH=$(dirname "$cargo"):$PATH                              # its own rustc before others
export PATH CARGO_HOME="$CARGO_TARGET_DIR/home"
version=$("$cargo" --version 2>/dev/null) && rustc=$(rustc --version 2>/dev/null) || { echo "skipped: there is no cargo that runs ($cargo), or no rustc"; exit 77; }
minor=$(echo "$rustc" | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
wanted=$(sed -n 's/^rust-version = "1\.\(.*\)"/\1/p' onelaunch/Cargo.toml)
[ "${minor:-9999}" -ge "$wanted" ] || { echo "skipped: $rustc; the crates need 1.$wanted"; exit 77; }
echo "$version, $rustc"
verb=$1
shift
exec "$cargo" "$verb" --offline --locked "$@"
