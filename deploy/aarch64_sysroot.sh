#!/bin/sh
# Unpacks the arm64 libraries of Debian that Redline is linked with, and their dependencies, into a folder for cross-
# compiling. Nothing is installed, because some libraries cannot be installed for two architectures.
# Usage: aarch64_sysroot.sh FOLDER
set -eu
folder=${1:?usage: aarch64_sysroot.sh FOLDER}
packages=$("$(dirname "$0")/install_packages.sh" names build | tr ' ' '\n' | grep -e '-dev$' | grep -v openblas)
[ "$(cat "$folder/complete" 2>/dev/null)" = "$packages" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$folder"
: >"$work/status"
# apt gets a separate state, in which arm64 is the only architecture and nothing is installed.
arm_apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Debug::NoLocking=1 \
    -o Dir::State="$work" -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" \
    -o Dir::Cache="$work" -o Dir::Cache::archives="$work/archives" "$@"
}
echo "unpacking arm64 libraries into $folder"
arm_apt update
# shellcheck disable=SC2086
arm_apt install -y --no-install-recommends --download-only libc6-dev $packages >/dev/null
for package in "$work"/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
# Absolute links such as /lib/... must lead into the folder.
find "$folder" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to "$(dirname "$link")" "$folder$(readlink "$link")")" "$link"
done
echo "$packages" >"$folder/complete"
