#!/bin/sh
# Installs the missing packages that building, testing and running Redline need on Debian 12.
# Usage: install_packages.sh [names] build|test|arm|bench|plot|deb|oci|conformance|slurm|systemd|netns...
# With `names` it prints the packages instead.
set -eu
only_names=""
[ "${1:-}" = names ] && only_names=1 && shift

build="g++ cmake ninja-build pkg-config ccache libboost-dev libboost-fiber-dev libboost-context-dev libmsgpack-cxx-dev
  libzmq3-dev cppzmq-dev libopenblas-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libpcre2-dev libsodium-dev libcurl4-openssl-dev libutf8proc-dev zlib1g-dev libbrotli-dev
  prometheus-cpp-dev"
[ $# -gt 0 ] || set -- build
packages=""
for purpose in "$@"; do
  case "$purpose" in
    build) more="$build" ;;
    test) more="$build libgtest-dev libgmock-dev python3-jinja2 python3-pytest python3-pytest-timeout python3-requests python3-torch python3-numpy python3-zmq python3-msgpack chromium prometheus neovim" ;;
    arm) more="cmake ninja-build pkg-config ccache g++-aarch64-linux-gnu qemu-user googletest" ;;
    bench) more="$build libbenchmark-dev" ;;
    deb) more="dpkg-dev file debootstrap binutils python3" ;;
    oci) more="mmdebstrap buildah podman runc" ;;
    plot) more="python3-matplotlib" ;;
    conformance) more="$build libgtest-dev libgmock-dev python3-jinja2 python3-jsonschema python3-pytest python3-pytest-asyncio python3-pytest-timeout python3-requests" ;;
    slurm) more="slurm-wlm munge" ;;
    systemd) more="systemd-container python3 curl" ;;
    netns) more="iproute2 iputils-ping python3" ;;
    *) echo "$0: unknown purpose '$purpose'" >&2; exit 64 ;;
  esac
  packages="$packages $more"
done
# shellcheck disable=SC2086
[ -n "$only_names" ] && echo $packages && exit 0

missing=""
for p in $packages; do
  status=$(dpkg-query -W -f='${Status}' "$p" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing="$missing $p"
done
# A Node.js from elsewhere (a version manager, an image) also works.
for purpose in "$@"; do
  case "$purpose" in test|slurm|netns)
    command -v node >/dev/null 2>&1 || missing="$missing nodejs"
    command -v npm >/dev/null 2>&1 || missing="$missing npm" ;;
  esac
done
[ -z "$missing" ] && exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "missing packages:$missing (run as root: apt-get install$missing)" >&2; exit 69; }
  as_root=sudo
fi
echo "installing:$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
