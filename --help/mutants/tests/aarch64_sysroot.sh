#!/usr/bin/env bash
# The AArch64 libraries that the tests link and run with, from Debian's packages, unpacked into a folder of their own: the machine's
# own list of architectures stays as it is, and no package is installed.
#
#   aarch64_sysroot.sh FOLDER
#
# The C library is among them because a program must run with the loader and the libc of one package version: with those of the
# cross compiler's package beside another libc it hangs in pthread_create.
set -euo pipefail
folder=$1
packages=(libc6 libgcc-s1 libcmocka0 libcmocka-dev libjansson4 libjansson-dev libmpfr6 libmpfr-dev libgmp10 libgmp-dev
    libpthreadpool0 libpthreadpool-dev libxxhash-dev)
[ "$(cat "$folder/unpacked" 2>/dev/null)" = "${packages[*]}" ] && exit 0

rm -rf "$folder"
mkdir -p "$folder"/apt/{state/lists/partial,cache/archives/partial,packages}
cd "$folder"
apt=(-q -o Dir::State="$PWD/apt/state" -o Dir::Cache="$PWD/apt/cache" -o Dir::State::status=/dev/null
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o Debug::NoLocking=1)
apt-get "${apt[@]}" update >/dev/null
(cd apt/packages && apt-get "${apt[@]}" download "${packages[@]}" >/dev/null)
for package in apt/packages/*.deb; do
    dpkg-deb -x "$package" .
done
rm -rf apt
echo "${packages[*]}" >unpacked
