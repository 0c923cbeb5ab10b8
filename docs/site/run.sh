#!/bin/sh
# Makes the site: fetches its one package into the build folder (once), then renders. Usage: run.sh BUILD_FOLDER OUT
set -eu
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { echo "the site is made with Node.js and npm (Debian: nodejs npm)" >&2; exit 77; }
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" "$(dirname "$2")"
out=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
cd "$1"
if ! cmp -s "$source/package-lock.json" package-lock.json || [ ! -d node_modules/markdown-it ]; then
  cp "$source/package.json" "$source/package-lock.json" .
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
fi
cp "$source/build.mjs" .
exec node build.mjs "$source/../.." "$out"
