#!/bin/sh
# Builds the site in a build folder and runs the checks. Usage: run.sh BUILD_FOLDER
# Environment: REDLINE_BIN (the program), REDLINE_MODELS (folder of the demo models).
set -eu
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { echo "no node or npm: skipped"; exit 77; }
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
"$source/../../docs/site/run.sh" tools site
if ! cmp -s "$source/package-lock.json" package-lock.json || [ ! -d node_modules/playwright-core ]; then
  cp "$source/package.json" "$source/package-lock.json" .
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
fi
cp "$source"/*.mjs .
export REDLINE_SOURCE="$source/../.." REDLINE_SITE="$PWD/site"
exec node --test site.test.mjs reference.test.mjs browser.test.mjs
