#!/bin/sh
# Installs the client into the build folder (once) and runs the checks, or one script. Usage: run.sh BUILD_FOLDER
# [SCRIPT ARGUMENTS...]
# Environment: REDLINE_BIN (the program), REDLINE_MODELS (folder of the demo models).
set -eu
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { echo "no node or npm: skipped"; exit 77; }
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
shift
if ! cmp -s "$source/package-lock.json" package-lock.json || [ ! -d node_modules/openai ]; then
  cp "$source/package.json" "$source/package-lock.json" .
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
fi
cp "$source"/*.mjs "$source"/*.py .
[ $# -eq 0 ] || exec node "$@"
exec node --test openai_client.test.mjs pool.test.mjs processes.test.mjs resume.test.mjs vllm.test.mjs endings.test.mjs hostile.test.mjs
