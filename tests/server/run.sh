#!/bin/sh
# Installs the client into the build folder (once) and runs the checks, or one script. Usage: run.sh BUILD_FOLDER
# [SCRIPT ARGUMENTS...]
# Environment: REDLINE_BIN (the program), REDLINE_MODELS (folder of the demo models), REDLINE_CHECKS=clients, agents, browser
# or vscode (the checks in that folder, with third-party clients, a browser or an editor; by default those in this folder).
set -eu
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { echo "no node or npm: skipped"; exit 77; }
source=$(cd "$(dirname "$0")" && pwd)
checks="$source/${REDLINE_CHECKS:-.}"
tests="openai_client.test.mjs pool.test.mjs processes.test.mjs resume.test.mjs vllm.test.mjs endings.test.mjs hostile.test.mjs editors.test.mjs tools.test.mjs templates.test.mjs formats.test.mjs monitoring.test.mjs top.test.mjs lsp.test.mjs edit.test.mjs door.test.mjs traces.test.mjs documents.test.mjs"
case "${REDLINE_CHECKS:-}" in
  clients) tests="clients.test.mjs next_edits.test.mjs openapi.test.mjs sdk_tools.test.mjs snippets.test.mjs" ;;
  agents) tests="agents.test.mjs" ;;
  browser) tests="studio.test.mjs" ;;
  vscode) tests="vscode.test.mjs" ;;
esac
mkdir -p "$1" && cd "$1"
shift
if ! cmp -s "$checks/package-lock.json" package-lock.json || [ ! -d node_modules/openai ]; then
  cp "$checks/package.json" "$checks/package-lock.json" .
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
fi
cp "$source"/*.mjs "$source"/*.py "$source"/*.lua .
[ -z "${REDLINE_CHECKS:-}" ] || cp "$checks"/*.mjs .
[ $# -eq 0 ] || exec node "$@"
# shellcheck disable=SC2086
exec node --test $tests
