#!/bin/sh
# Installs the Kubernetes API's types into the build folder (once) and checks deploy/. Usage: run.sh BUILD_FOLDER
# Environment: REDLINE_BIN (the program), REDLINE_BUILD (its build folder).
set -eu
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { echo "no node or npm: skipped"; exit 77; }
source=$(cd "$(dirname "$0")" && pwd)
REDLINE_SOURCE=$(cd "$source/../.." && pwd)
export REDLINE_SOURCE
mkdir -p "$1" && cd "$1"
if ! cmp -s "$source/package-lock.json" package-lock.json || [ ! -d node_modules/yaml ]; then
  cp "$source/package.json" "$source/package-lock.json" .
  npm ci --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error
fi
cp "$source/files.test.mjs" "$source/sbom.test.mjs" .
exec node --test files.test.mjs sbom.test.mjs
