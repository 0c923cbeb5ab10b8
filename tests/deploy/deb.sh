#!/bin/sh
# The Debian packages in a separate, fresh Debian 12: installed by apt, an edit by the demonstration models as the
# service's user, removed, purged. Requires root, debootstrap and this machine's mirrors; takes a minute and 300 MB in a
# temporary folder. Usage: deb.sh FOLDER_OF_PACKAGES
set -eu
[ "$(id -u)" -eq 0 ] || { echo "expected to run as root, which debootstrap needs; run: sudo make deb-test" >&2; exit 77; }
packages=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d)
chmod 755 "$root"
finish() { umount "$root/proc" 2>/dev/null || true; rm -rf "$root"; }
trap finish EXIT
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Release: bookworm' | head -1)
debootstrap --variant=minbase bookworm "$root" "$mirror" > "$root.log" 2>&1 || { tail -5 "$root.log"; exit 1; }
rm -f "$root.log"
# The mirrors, proxies and certificates of this machine.
rm "$root/etc/apt/sources.list"
cp -a /etc/apt/. "$root/etc/apt/"
[ ! -d /etc/ssl ] || cp -a /etc/ssl "$root/etc/"
[ ! -d /usr/local/share/ca-certificates ] || cp -a /usr/local/share/ca-certificates "$root/usr/local/share/"
cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
mount -t proc proc "$root/proc"
mkdir "$root/packages"
cp "$packages"/redline*.deb "$source/bench/demo_files/inventory.py" "$source/bench/demo_files/inventory.instruction" "$root/packages/"

cat > "$root/packages/check" <<'CHECK'
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends /packages/*.deb > /dev/null 2>&1
redline --version | head -1
getent passwd redline > /dev/null || { echo "expected a user redline"; exit 1; }
models=/usr/share/redline/models
cp /packages/inventory.py /tmp/inventory.py
chmod 666 /tmp/inventory.py
as_user="setpriv --reuid redline --regid redline --clear-groups"
$as_user env HOME=/tmp redline --config /etc/redline/redline.toml edit /tmp/inventory.py --model $models/demo-target.gguf \
  --draft $models/demo-draft.gguf --instruction "$(cat /packages/inventory.instruction)" > /tmp/edit.diff
grep -q '^[-+]' /tmp/edit.diff || { echo "expected a difference, found:"; cat /tmp/edit.diff; exit 1; }
# The command is the unit's.
command=$(sed -n 's/^ExecStart=//p' /lib/systemd/system/redline.service | sed 's/ \$REDLINE_OPTIONS//')
REDLINE_MODEL=$models/demo-target.gguf $as_user env HOME=/tmp $command --port-file /tmp/port > /tmp/log 2>&1 &
for i in $(seq 100); do [ -s /tmp/port ] && break; sleep 0.1; done
redline top --server "http://127.0.0.1:$(cat /tmp/port)" --once > /dev/null || { cat /tmp/log; exit 1; }
kill $! && wait $! || true
echo 'kv = "f16"' > /etc/redline/server.conf
apt-get remove -y -qq redline redline-demo-models > /dev/null 2>&1
[ -e /etc/redline/redline.toml ] || { echo "remove took the configuration"; exit 1; }
apt-get purge -y -qq redline > /dev/null 2>&1
[ ! -e /etc/redline ] || { echo "purge left /etc/redline"; exit 1; }
[ -z "$(find / -xdev -iname '*redline*' -not -path '/packages/*' -not -path '/tmp/*' -not -path '/var/lib/systemd/*')" ] || { echo "purge left:"; find / -xdev -iname '*redline*' -not -path '/packages/*'; exit 1; }
echo passed
CHECK
chroot "$root" sh /packages/check
