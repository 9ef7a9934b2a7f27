#!/usr/bin/env bash
# Runs the acceptance suite against the deployed form in MiniStack, with keys of its own and the
# suite's fake model. Arguments go on to pytest. Needs `make build`.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$root"
suite="${TURNFOLD_ACCEPT:-../shared/accept}"
python="$root/.venv/bin/python"
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
  fi
  rm -rf "$data"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fake_port="$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
OPENAI_API_KEY=any PYTHONPATH="$root" "$python" -m infra.deployed --port 0 --keys 2 \
  --model "http://127.0.0.1:$fake_port/v1" >"$data/ready" 2>"$data/log" &
stack=$!

url=""
for _ in $(seq 1 1500); do
  url="$(sed -n 's/^Turnfold is ready at //p' "$data/ready")"
  if [ -n "$url" ] || ! kill -0 "$stack" 2>/dev/null; then
    break
  fi
  sleep 0.2
done
if [ -z "$url" ]; then
  echo "acceptance: the stack was not deployed" >&2
  tail -n 60 "$data/log" >&2
  exit 1
fi
cat "$data/log"

PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest "$suite" -p no:cacheprovider --base-url "$url" \
  --key "$(sed -n 's/^key 1: //p' "$data/ready")" --key2 "$(sed -n 's/^key 2: //p' "$data/ready")" \
  --fake-port "$fake_port" -m spine -q "$@"
