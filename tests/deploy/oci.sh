#!/bin/sh
# Runs the images of deploy/oci with podman as intended: as a user other than root, without capabilities, with a
# read-only root, without the machine's network. Requires root, podman and runc; half a minute. Usage: oci.sh FOLDER_OF_IMAGES
set -eu
[ "$(id -u)" -eq 0 ] || { echo "expected to run as root; run: sudo make oci-test" >&2; exit 77; }
for tool in podman runc; do
  command -v $tool >/dev/null 2>&1 || { echo "no $tool; run: deploy/install_packages.sh oci" >&2; exit 77; }
done
images=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
# runc also runs where both kinds of cgroups exist. The limits stay unchanged, because not every user may raise them.
limits="--ulimit nofile=$(ulimit -Hn):$(ulimit -Hn) --ulimit nproc=4096:4096"
run="podman --root $work/storage --runroot $work/run --tmpdir $work/tmp --storage-driver vfs --cgroup-manager cgroupfs --runtime runc"
finish() { $run rm -a -f -t 0 >/dev/null 2>&1 || true; $run rmi -a -f >/dev/null 2>&1 || true; rm -rf "$work"; }
trap finish EXIT
fail() { echo "$1"; exit 1; }

$run load -q -i "$images/redline.oci.tar" >/dev/null
image=$($run images --format '{{.Repository}}:{{.Tag}}' | grep redline | head -1)
[ "$($run inspect --type image --format '{{.Config.User}} {{.Config.Entrypoint}} {{.ManifestType}}' "$image")" = \
  "10001:10001 [redline] application/vnd.oci.image.manifest.v1+json" ] || fail "expected user, entry point and OCI's manifest, found $($run inspect --type image "$image")"
$run rmi -f "$image" >/dev/null
$run load -q -i "$images/redline.docker.tar" >/dev/null
image=$($run images --format '{{.Repository}}:{{.Tag}}' | grep redline | head -1)

hard="--read-only --read-only-tmpfs=false --cap-drop ALL --security-opt no-new-privileges --network none $limits"
$run run --rm $hard "$image" --version > "$work/version" 2> "$work/said" || {
  echo "podman runs no container on this machine: skipped. It said:"; cat "$work/said"; exit 77; }
grep -q '^redline [0-9]' "$work/version" || fail "expected a version, found $(cat "$work/version")"
models=/models
$run run -d --name server $hard -v "$source/bench/demo_models:$models:ro" "$image" \
  serve --model $models/demo-target.gguf --draft $models/demo-draft.gguf --listen 127.0.0.1:8080 --threads 1 >/dev/null 2>"$work/said" || fail "$(cat "$work/said")"
inside="$run exec server"
for i in $(seq 300); do $inside curl -fsS http://127.0.0.1:8080/readyz >/dev/null 2>&1 && break; sleep 0.2; done
$run healthcheck run server || fail "expected a healthy server: $($run logs server 2>&1)"
body='{"messages": [{"role": "user", "content": "Change the number 10 to 64.\n```python\nLIMIT = 10\n```"}], "temperature": 0}'
answer=$($inside curl -fsS http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d "$body")
echo "$answer" | grep -q 'LIMIT = 64' || fail "expected an edit, found $answer"
[ "$($inside curl -fsS http://127.0.0.1:8080/ | head -c 15)" = "<!doctype html>" ] || fail "expected a page at /"
[ "$($inside sh -c 'grep -E "^(Uid|CapEff):" /proc/1/status' | tr -s '\t\n' ' ')" = "Uid: 10001 10001 10001 10001 CapEff: 0000000000000000 " ] ||
  fail "expected user 10001 without capabilities, found $($inside cat /proc/1/status)"
if $inside sh -c ': > /tmp/file' 2>/dev/null || $inside sh -c ': > /usr/bin/file' 2>/dev/null; then fail "the root can be written"; fi
[ -z "$($inside find /etc/apt /var/lib/apt/lists -name '*.list' -o -name '*.sources' -o -name '*Release*' 2>/dev/null)" ] || fail "the image holds settings of the machine that made it"
$run stop -t 30 server >/dev/null 2>&1
[ "$($run inspect --format '{{.State.ExitCode}}' server)" = 0 ] || fail "expected a drain: $($run logs server 2>&1)"
echo passed
