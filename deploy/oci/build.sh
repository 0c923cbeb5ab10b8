#!/bin/sh
# Makes an image for every role (serve, broker, gateway, worker) from the Debian package of `make deb`, without a daemon:
# mmdebstrap makes a Debian 12 with only the package's dependencies, and buildah puts it into an image. Needs root and
# Debian's mirrors, but no namespaces, and no mounts except in a temporary folder. Writes to OUT:
#   redline.oci.tar     the image in OCI format: skopeo copy oci-archive:..., podman load
#   redline.docker.tar  the same in Docker's format, which can contain a health check: docker load, podman load
# SOURCE_DATE_EPOCH sets the time of all files; the default is the time of the package file.
# Usage: build.sh FOLDER_OF_PACKAGES OUT
set -eu
[ "$(id -u)" -eq 0 ] || { echo "expected to run as root, which mmdebstrap and buildah need here; run: sudo make oci" >&2; exit 77; }
for tool in mmdebstrap buildah; do
  command -v $tool >/dev/null 2>&1 || { echo "no $tool; run: deploy/install_packages.sh oci" >&2; exit 69; }
done
package=$(find "$1" -name 'redline_*.deb' | sort | tail -1)
[ -n "$package" ] || { echo "expected redline_*.deb in $1; run: make deb" >&2; exit 69; }
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d)
finish() { buildah $storage rm -a >/dev/null 2>&1 || true; buildah $storage rmi -a -f >/dev/null 2>&1 || true; rm -rf "$work"; }
storage="--root $work/storage --runroot $work/run --storage-driver vfs"
trap finish EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y "$package")}
export SOURCE_DATE_EPOCH BUILDAH_ISOLATION=chroot
version=$(dpkg-deb -f "$package" Version)
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Release: bookworm' | head -1)

# The user has a fixed number, which Kubernetes can distinguish from root, and exists before the package asks for it. dpkg
# unpacks the package itself; apt installs only its dependencies.
needs=$(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/ //g')
mmdebstrap --quiet --mode=root --variant=essential --include="$needs,ca-certificates,curl" \
  --essential-hook='echo redline:x:10001: >> "$1/etc/group"' \
  --essential-hook='echo redline:x:10001:10001:Redline:/nonexistent:/usr/sbin/nologin >> "$1/etc/passwd"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/doc/redline/*' \
  --customize-hook="cp '$package' \"\$1/redline.deb\"" --customize-hook='chroot "$1" dpkg -i /redline.deb >/dev/null' \
  --customize-hook='rm -f "$1/redline.deb" "$1/etc/apt/sources.list" "$1/etc/resolv.conf" "$1/etc/hostname"' --skip=output/dev \
  bookworm "$work/root.tar" ${mirror:+"$mirror"}

container=$(buildah $storage from scratch)
buildah $storage add --quiet "$container" "$work/root.tar" / >/dev/null
buildah $storage config --user 10001:10001 --workingdir / --entrypoint '["redline"]' --cmd --help --port 8080 --stop-signal SIGTERM \
  --env PATH=/usr/local/bin:/usr/bin:/bin \
  --label org.opencontainers.image.title=redline --label org.opencontainers.image.version="$version" \
  --label org.opencontainers.image.licenses=Apache-2.0 \
  --label org.opencontainers.image.description="Serves code-edit models to many users at once, on CPUs" "$container"
buildah $storage commit --quiet --format oci --timestamp "$SOURCE_DATE_EPOCH" "$container" localhost/redline:oci >/dev/null
BUILDAH_FORMAT=docker buildah $storage config --healthcheck 'CMD-SHELL curl -fsS http://127.0.0.1:8080/livez' --healthcheck-interval 10s \
  --healthcheck-timeout 5s --healthcheck-start-period 60s "$container"
buildah $storage commit --quiet --format docker --timestamp "$SOURCE_DATE_EPOCH" "$container" "localhost/redline:$version" >/dev/null
rm -f "$out/redline.oci.tar" "$out/redline.docker.tar"
buildah $storage push --quiet localhost/redline:oci "oci-archive:$out/redline.oci.tar:redline:$version" >/dev/null
buildah $storage push --quiet --format v2s2 "localhost/redline:$version" "docker-archive:$out/redline.docker.tar:localhost/redline:$version" >/dev/null
ls -sh1 "$out"/redline.*.tar
