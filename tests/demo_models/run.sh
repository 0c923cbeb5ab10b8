#!/bin/sh
# Runs recipe_test.py with a Python that has torch. Usage: run.sh WORK_FOLDER
# Environment: REDLINE_BIN (the program).
set -eu
source=$(cd "$(dirname "$0")" && pwd)
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import numpy, torch' 2>/dev/null; then
    rm -rf "$1" && mkdir -p "$1"
    exec "$python" -B "$source/recipe_test.py" "$1"
  fi
done
echo "wanted a python3 with torch and numpy: run deploy/install_packages.sh test" >&2
exit 1
