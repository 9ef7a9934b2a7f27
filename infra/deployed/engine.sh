#!/usr/bin/env bash
# A container engine of its own for `sam local`: engine.sh start FOLDER | engine.sh stop FOLDER
#
# Installs Debian's docker.io where there is none. Its socket, images and state are in FOLDER and go
# with it. The machine's firewall and forwarding stay as they are, so containers reach this machine
# (198.18.0.1) and nothing else. Needs root.
set -euo pipefail
action=$1 folder=$2
export DOCKER_HOST=unix://$folder/docker.sock

case $action in
start)
  command -v dockerd >/dev/null || {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables
  } >/dev/null
  mkdir -p "$folder"
  setsid nohup dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" \
    -H "$DOCKER_HOST" --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
    --bip 198.18.0.1/24 >"$folder/log" 2>&1 </dev/null &
  for _ in $(seq 150); do
    docker info >/dev/null 2>&1 && exit 0
    sleep 0.2
  done
  tail -5 "$folder/log" >&2
  exit 1
  ;;
stop)
  docker ps -aq 2>/dev/null | xargs -r docker rm -f >/dev/null 2>&1 || true
  if [ -e "$folder/pid" ]; then kill "$(cat "$folder/pid")" 2>/dev/null || true; fi
  for _ in $(seq 100); do
    [ -e "$folder/pid" ] || break
    sleep 0.2
  done
  umount "$folder/exec/netns/default" 2>/dev/null || true
  ip link del docker0 2>/dev/null || true
  rm -rf "$folder"
  ;;
esac
