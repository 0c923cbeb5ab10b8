#!/bin/sh
# Runs public suites against a build. Usage: run.sh BUILD_FOLDER SUITES_FOLDER [arguments of conformance.py...]
# Debian's Python has the packages that deploy/install_packages.sh installs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
suites=$2
shift 2
[ -d "$suites" ] || { echo "there is no folder '$suites': make conformance DIR=FOLDER, see tests/conformance/README.md" >&2; exit 1; }
exec /usr/bin/python3 -B "$here/conformance.py" --probe "$build/conformance_probe" --redline "$build/redline" \
  --models "$here/../../bench/demo_models" --work "$build/conformance" "$@" "$suites"
