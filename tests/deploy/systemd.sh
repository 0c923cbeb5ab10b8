#!/bin/sh
# deploy/systemd/ under a real systemd, booted in a container over this machine's file system, which stays unchanged: a
# pool set up as in deploy/README.md, whose workers are restarted while clients ask and one of which is stopped for the
# watchdog; then a pool with keys and a worker over tcp; then a single server. Compares all answers. Requires root and
# systemd-container; takes half a minute.
# Environment: REDLINE_BIN (the program), REDLINE_MODELS (folder of the demo models).
set -eu
[ "$(id -u)" -eq 0 ] || { echo "expected to run as root, which systemd-nspawn needs; run: sudo make systemd-test" >&2; exit 77; }
# Only this process sees the mounts below, and they end with it.
[ -n "${REDLINE_UNSHARED:-}" ] || REDLINE_UNSHARED=1 exec unshare --mount "$0" "$@"
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
finish() { umount -R "$folder" 2>/dev/null || true; rmdir "$folder"; }
trap finish EXIT
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
root=$folder/root

rm -f "$root"/etc/systemd/system/*.wants/* "$root/etc/machine-id"
touch "$root/etc/machine-id"
rm -rf "$root/etc/redline"
mkdir -p "$root/etc/redline" "$root/srv/models" "$root/etc/sysusers.d"
cp "$REDLINE_BIN" "$root/usr/local/bin/redline"
cp "$REDLINE_MODELS/demo-target.gguf" "$root/srv/models/target.gguf"
cp "$REDLINE_MODELS/demo-draft.gguf" "$root/srv/models/draft.gguf"
chmod -R a+rX "$root/srv/models" "$root/usr/local/bin/redline"
cp "$source"/deploy/systemd/redline*.service "$root/etc/systemd/system/"
cp "$source/deploy/redline.toml" "$root/etc/redline/"
cp "$source/deploy/systemd/redline.sysusers.conf" "$root/etc/sysusers.d/redline.conf"
python3 - "$source/bench/demo_files" > "$root/request.json" <<'PYTHON'
import json, sys
file, instruction = (open(sys.argv[1] + "/inventory." + end).read() for end in ("py", "instruction"))
print(json.dumps({"messages": [{"role": "user", "content": instruction + "\n```python\n" + file + "```"}], "temperature": 0,
                  "max_tokens": 400, "redline": {"speculation": {"method": "regular"}}}))
PYTHON
cat > "$root/etc/systemd/system/redline-test.target" <<'UNIT'
[Unit]
Requires=basic.target redline-test.service
UNIT
cat > "$root/etc/systemd/system/redline-test.service" <<'UNIT'
[Service]
Type=oneshot
ExecStart=/bin/bash /test.sh
ExecStopPost=/bin/systemctl poweroff --force --no-block
StandardOutput=file:/test.out
StandardError=file:/test.out
UNIT
cat > "$root/test.sh" <<'TEST'
set -eu
trap 'journalctl --no-pager -u "redline-*" | grep -v answered | tail -40' EXIT
ready() { for i in $(seq 100); do curl -fs http://127.0.0.1:8080/readyz >/dev/null && return; sleep 0.2; done; echo "never ready"; exit 1; }
ask() {
  curl -fsS http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d @/request.json |
    sed 's/.*"content":"\(.*\)","refusal".*/\1/' | sha256sum
}
systemd-sysusers
printf '%s\n' REDLINE_ROLE=node REDLINE_MODEL=/srv/models/target.gguf REDLINE_DRAFT=/srv/models/draft.gguf > /etc/redline/worker.conf
echo REDLINE_THREADS=1 >> /etc/redline/worker.conf
systemctl start redline-broker redline-gateway redline-worker@1 redline-worker@2
ready
ask >> /answers
clients=
for i in 1 2 3 4 5 6; do
  (for k in 1 2 3; do ask >> /answers; done) & clients="$clients $!"
done
sleep 0.5
systemctl restart redline-worker@1
sleep 1
systemctl restart redline-worker@2
for client in $clients; do wait "$client"; done

# A hanging worker is replaced; the watchdog's half a minute is shortened to three seconds.
mkdir -p /etc/systemd/system/redline-worker@1.service.d
printf '%s\n' '[Service]' WatchdogSec=3 TimeoutAbortSec=1 > /etc/systemd/system/redline-worker@1.service.d/test.conf
systemctl daemon-reload && systemctl restart redline-worker@1
kill -STOP "$(systemctl show -p MainPID --value redline-worker@1)"
for i in $(seq 150); do [ "$(systemctl show -p NRestarts --value redline-worker@1)" -ge 1 ] && break; sleep 0.2; done
[ "$(systemctl show -p NRestarts --value redline-worker@1)" -ge 1 ] || { echo "the watchdog did not see a worker that hangs"; exit 1; }
until systemctl is-active --quiet redline-worker@1; do sleep 0.2; done
ask >> /answers

redline keygen /etc/redline/curve >/dev/null && chown -R redline: /etc/redline/curve
echo 'REDLINE_OPTIONS=--listen ipc:///run/redline/pool --listen tcp://0.0.0.0:7777' >> /etc/redline/broker.conf
for role in broker gateway worker; do echo REDLINE_KEYS=/etc/redline/curve >> /etc/redline/$role.conf; done
systemctl restart redline-broker redline-gateway redline-worker@1 redline-worker@2
echo REDLINE_JOIN=tcp://127.0.0.1:7777 > /etc/redline/worker-3.conf
systemctl start redline-worker@3
ready
ask >> /answers
systemctl stop redline-worker@1 redline-worker@2
ready
ask >> /answers
systemctl stop 'redline-worker@*' redline-gateway redline-broker
# A single server: the configuration names its model, and it rereads its keys in the middle.
sed -i 's|^# model = "/srv/models/target.gguf"|model = "/srv/models/target.gguf"|' /etc/redline/redline.toml
systemctl start redline
ready
ask >> /answers
systemctl reload redline
ready
ask >> /answers
systemctl is-failed --quiet 'redline-*' && exit 1
trap - EXIT
echo "$(wc -l < /answers) answers, $(sort -u /answers | wc -l) text; $(journalctl -u redline-gateway | grep -c 'continues at') went on at another worker"
[ "$(sort -u /answers | wc -l)" -eq 1 ] && echo passed
TEST
timeout 120 systemd-nspawn --quiet --directory="$root" --boot --register=no --keep-unit --private-network --link-journal=no \
  --kill-signal=SIGRTMIN+3 --machine=redline-test -- systemd.unit=redline-test.target > "$folder/boot.log" 2>&1 < /dev/null || true
if [ -e "$root/test.out" ]; then cat "$root/test.out"; else tail -20 "$folder/boot.log"; fi
grep -q '^passed$' "$root/test.out"
