#!/bin/sh
# Checks what actors/cli/commands/commit.cmake derives from a repository, and that it keeps an unchanged file.
# Usage: commit.sh CMAKE SOURCE_FOLDER
set -eu
cmake=$1
script=$2/actors/cli/commands/commit.cmake
command -v git >/dev/null 2>&1 || { echo "no git: skipped"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
said() {
  "$cmake" -DSOURCE="$folder/source" -DVERSION=1.2.3 -DCOMMIT="${1:-}" -DOUT="$folder/commit.cpp" -P "$script" || return 1
  sed -n 's/.*built_commit = "\(.*\)";/\1/p' commit.cpp
}
expect() { # PATTERN FOUND
  echo "$2" | grep -Eqx "$1" || { echo "expected $1, found '$2'"; exit 1; }
}
mkdir source
expect '' "$(said)"
expect 'g1-a.b' "$(said g1-a.b)"
git -C source init -q
expect '' "$(said)" # there is no commit yet
echo one > source/file
git -C source add file
git -C source commit -qm one
head=$(git -C source rev-parse HEAD | cut -c1-12)
expect "g$head" "$(said)"
touch -d @1000000000 commit.cpp
expect "g$head" "$(said)"
expect 1000000000 "$(stat -c %Y commit.cpp)"
echo two > source/file
expect "g$head.dirty" "$(said)"
git -C source checkout -q file
git -C source tag -a -m t v1.2.2
expect "g$head" "$(said)" # the tag is another release's
git -C source tag -a -m t v1.2.3
expect '' "$(said)"
echo two > source/file
expect "0.g$head.dirty" "$(said)"
git -C source commit -qam two
expect "1.g$(git -C source rev-parse HEAD | cut -c1-12)" "$(said)"
if said '"; int x' 2>/dev/null; then echo "expected a refusal"; exit 1; fi
# A folder inside another project's repository does not get that repository's version.
mkdir -p source/inside
"$cmake" -DSOURCE="$folder/source/inside" -DVERSION=1.2.3 -DCOMMIT= -DOUT="$folder/commit.cpp" -P "$script"
expect '' "$(sed -n 's/.*built_commit = "\(.*\)";/\1/p' commit.cpp)"
