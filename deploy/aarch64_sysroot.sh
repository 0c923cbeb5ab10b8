#!/bin/sh
# Unpacks Debian's arm64 libraries that Redline is linked with, and what those need, into a folder: for cross-compiling
# beside a machine's own libraries, some of which cannot be installed for two architectures. Nothing is installed.
# Usage: aarch64_sysroot.sh FOLDER
set -eu
folder=${1:?usage: aarch64_sysroot.sh FOLDER}
packages=$("$(dirname "$0")/install_packages.sh" names build | tr ' ' '\n' | grep -e '-dev$' | grep -v openblas)
[ "$(cat "$folder/complete" 2>/dev/null)" = "$packages" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$folder"
: >"$work/status"
# A state of its own: this machine knows nothing of arm64 and has nothing installed.
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
# Links to /lib/... mean the folder's.
find "$folder" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to "$(dirname "$link")" "$folder$(readlink "$link")")" "$link"
done
echo "$packages" >"$folder/complete"
