#!/usr/bin/env bash
# Runs the acceptance suite, which lies outside of this repository, against a stack of its own whose
# model is the suite's fake one: `infra/acceptance.sh local` against what `make run` starts,
# `infra/acceptance.sh deployed` against the deployed form in MiniStack (needs `make build`).
# More arguments go on to pytest: `infra/acceptance.sh local -m rules` runs a part of it.
set -euo pipefail

form="$1"
shift
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
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
model="http://127.0.0.1:$fake_port/v1"
export OPENAI_API_KEY=any
case "$form" in
local)
  PORT=0 TURNFOLD_DATA="$data/stack" OPENAI_BASE_URL="$model" \
    "$python" -m infra.local >"$data/ready" 2>"$data/log" &
  ;;
deployed)
  "$python" -m infra.deployed --port 0 --keys 2 --model "$model" >"$data/ready" 2>"$data/log" &
  ;;
*)
  echo "usage: infra/acceptance.sh local|deployed [pytest arguments]" >&2
  exit 2
  ;;
esac
stack=$!

# Deploying takes minutes where nothing was built before.
url=""
for _ in $(seq 1 1500); do
  url="$(sed -n 's/^Turnfold is ready at //p' "$data/ready")"
  if [ -n "$url" ] || ! kill -0 "$stack" 2>/dev/null; then
    break
  fi
  sleep 0.2
done
if [ -z "$url" ]; then
  echo "acceptance: the stack did not become ready; its log ends with" >&2
  tail -n 60 "$data/log" >&2
  exit 1
fi

keys=(local local-2)
if [ "$form" = deployed ]; then
  keys=("$(sed -n 's/^key 1: //p' "$data/ready")" "$(sed -n 's/^key 2: //p' "$data/ready")")
fi
status=0
PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest "$suite" -p no:cacheprovider -q --base-url "$url" \
  --key "${keys[0]}" --key2 "${keys[1]}" --fake-port "$fake_port" "$@" || status=$?
if [ "$status" -ne 0 ]; then
  echo "acceptance: failed; the log of the stack ends with" >&2
  tail -n 100 "$data/log" >&2
fi
exit "$status"
