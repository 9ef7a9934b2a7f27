#!/usr/bin/env bash
# Runs the acceptance suite against a local stack of its own, whose model is the suite's fake one.
# Arguments go on to pytest, so `infra/local/acceptance.sh -m rules` runs another part of it.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$root"
suite="${TURNFOLD_ACCEPT:-../shared/accept}"
python="$root/.venv/bin/python"
if [ ! -x "$python" ]; then
  python="$(command -v python3)"
fi
if [ ! -d "$suite" ]; then
  echo "acceptance: skipped, there is no suite at $suite"
  exit 0
fi

data="$(mktemp -d)"
stack=""
stop() {
  if [ -n "$stack" ]; then
    kill -TERM "$stack" 2>/dev/null || true
    wait "$stack" 2>/dev/null || true
    stack=""
  fi
  rm -rf "$data"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

free_port() {
  "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
fake_port="$(free_port)"

PORT=0 TURNFOLD_DATA="$data/stack" \
  OPENAI_API_KEY=any OPENAI_BASE_URL="http://127.0.0.1:$fake_port/v1" \
  "$python" -m infra.local >"$data/ready" 2>"$data/log" &
stack=$!

url=""
for _ in $(seq 1 600); do
  url="$(sed -n 's/^Turnfold is ready at //p' "$data/ready")"
  if [ -n "$url" ] || ! kill -0 "$stack" 2>/dev/null; then
    break
  fi
  sleep 0.2
done
if [ -z "$url" ]; then
  echo "acceptance: the local stack did not become ready; its log ends with" >&2
  tail -n 60 "$data/log" >&2
  exit 1
fi

status=0
PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest "$suite" -p no:cacheprovider \
  --base-url "$url" --key local --key2 local-2 --fake-port "$fake_port" -m spine -q "$@" || status=$?
if [ "$status" -ne 0 ]; then
  echo "acceptance: failed; the log of the local stack ends with" >&2
  tail -n 100 "$data/log" >&2
fi
exit "$status"
