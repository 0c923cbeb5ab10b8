#!/bin/sh
# Checks where `make install` puts what, below a DESTDIR. Usage: install.sh BUILD_FOLDER
set -eu
build=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root cmake --install "$build" --prefix /opt/redline >/dev/null
cd "$root/opt/redline"
for file in bin/redline share/man/man1/redline.1 share/man/man1/redline-serve.1 share/man/man1/redline-edit.1 \
  share/bash-completion/completions/redline share/zsh/site-functions/_redline share/fish/vendor_completions.d/redline.fish \
  share/doc/redline/LICENSE lib/systemd/system/redline.service lib/systemd/system/redline-worker@.service lib/sysusers.d/redline.conf
do
  [ -s "$file" ] || { echo "expected $file, found:"; find . -type f; exit 1; }
done
grep -q '^ExecStart=/opt/redline/bin/redline ' lib/systemd/system/redline.service || { echo "the unit names another program"; exit 1; }
[ "$(find "$root" -type f | grep -cv '^'"$root"'/opt/redline/')" = 0 ] || { echo "files beside the prefix"; exit 1; }
bin/redline --version >/dev/null
bash -n share/bash-completion/completions/redline
[ "$(PATH=$PWD/bin:$PATH bash -c '. share/bash-completion/completions/redline; COMP_WORDS=(redline serv) COMP_CWORD=1; _redline; echo "${COMPREPLY[@]}"')" = serve ] \
  || { echo "bash does not complete commands"; exit 1; }

# The pages have no warnings, if a checker is installed.
said=""
for page in share/man/man1/*.1; do
  if command -v groff >/dev/null 2>&1; then said="$said$(groff -man -ww -z "$page" 2>&1)"; fi
  if command -v mandoc >/dev/null 2>&1; then said="$said$(mandoc -T lint -W warning "$page" 2>&1 || true)"; fi
  if command -v man >/dev/null 2>&1; then said="$said$(man --warnings -l "$page" 2>&1 >/dev/null)"; fi
done
[ -z "$said" ] || { echo "$said"; exit 1; }
