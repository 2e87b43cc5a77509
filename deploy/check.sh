#!/bin/bash
# Builds the image, brings docker-compose.yml up under another project name and on free ports, asks the service, looks
# for the traces (keys in Redis, latencies in Prometheus), makes Redis hang, stops it all. Leaves nothing running.
#
#   deploy/check.sh              with the Docker daemon and the image registry at hand
#   deploy/check.sh --stand-ins  without a registry: see deploy/stand-ins.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/stand-ins.sh

mode=${1:-}
case "$mode" in
    "" | --stand-ins) ;;
    *) echo "usage: deploy/check.sh [--stand-ins]" >&2 && exit 2 ;;
esac

work=$(mktemp -d)
compose() { docker compose --project-name semblance-check "$@"; }
probe() { python3 deploy/probe.py "$@"; }
step() { printf '%4ss  %s\n' "$SECONDS" "$*"; }
fail() { echo "FAILED: $*" >&2 && exit 1; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

finish() {
    local status=$?
    step "taking it down"
    [ "$status" = 0 ] || compose --ansi never logs --tail 20 2>/dev/null || true
    compose unpause >/dev/null 2>&1 || true  # a paused container cannot be stopped
    compose down --volumes --timeout 5 >/dev/null 2>&1 || true
    [ "$mode" != --stand-ins ] || stop_docker "$work"
    rm -rf "$work"
    step "$([ "$status" = 0 ] && echo "all is well" || echo "failed ($status)")"
    exit "$status"
}
trap finish EXIT

up() {
    compose up --detach --wait --wait-timeout 120 >"$work/up.log" 2>&1 || { tail -40 "$work/up.log" >&2 && return 1; }
}

if [ "$mode" = --stand-ins ]; then
    step "a Docker daemon of our own"
    start_docker "$work"
    step "stand-ins for the base images"
    build_stand_ins "$work"
fi
docker info --format 'docker {{.ServerVersion}}, {{.Driver}}, cgroup v{{.CgroupVersion}}'

API_PORT=$(free_port) PROMETHEUS_PORT=$(free_port)
export API_PORT PROMETHEUS_PORT SEMBLANCE_API_KEY="check-$RANDOM$RANDOM$RANDOM$RANDOM"
SEMBLANCE_API_KEYS=check:$(printf %s "$SEMBLANCE_API_KEY" | sha256sum | cut -d ' ' -f 1)
export SEMBLANCE_API_KEYS
api=http://127.0.0.1:$API_PORT prometheus=http://127.0.0.1:$PROMETHEUS_PORT

compose config --quiet
step "image"
compose build --quiet api
docker image inspect semblance:0.1.0 --format 'semblance:0.1.0: {{.Size}} bytes, user {{.Config.User}}'
step "up, with an API key"
up
compose ps --format '{{.Service}}: {{.Status}}'

step "one request"
probe refused "$api"
probe similarity "$api" | tee "$work/first.json"

step "its embeddings in Redis"
for _ in $(seq 20); do
    keys=$(compose exec -T redis redis-cli DBSIZE | tr -cd 0-9)
    [ "$keys" = 2 ] && break
    sleep 0.1
done
[ "$keys" = 2 ] || fail "Redis: expected 2 keys for 2 sentences, found $keys"
compose exec -T redis redis-cli --scan --pattern 'semblance:1:*'

step "a service that has forgotten them finds them there"
compose restart --timeout 15 api >/dev/null 2>&1
up
probe similarity "$api" >"$work/second.json"
cmp "$work/first.json" "$work/second.json" || fail "the answer changed"
probe metric "$api" 'semblance_cache_hits_total{tier="redis"}' 2

step "latency in Prometheus"
probe latency "$api" "$prometheus"

step "a Redis that hangs"
compose pause redis >/dev/null 2>&1
probe similarity "$api" "A sentence that is in no cache yet"
probe readiness "$api" degraded
compose unpause redis >/dev/null 2>&1
# Its health check was paused too, and `up` does not wait for a container that calls itself unhealthy.
for _ in $(seq 30); do
    [ "$(compose ps redis --format '{{.Health}}')" = healthy ] && break
    sleep 1
done
probe similarity "$api" "This one is for a Redis that has come back" >/dev/null
probe readiness "$api" ready

step "nobody is root, nothing is writable, no torch"
for service in api redis prometheus; do
    uid=$(compose exec -T "$service" id -u)
    echo "$service: uid $uid"
    [ "$uid" != 0 ] || fail "$service runs as root"
    ! compose exec -T "$service" sh -c 'touch /etc/written' 2>/dev/null || fail "$service can write to its root"
done
! compose exec -T api python -c 'import torch' 2>/dev/null || fail "torch is in the image"
! compose exec -T api sh -c 'touch /app/models/written' 2>/dev/null || fail "the models can be changed"

step "SIGTERM"
began=$SECONDS
compose stop --timeout 15 api >/dev/null 2>&1
[ $((SECONDS - began)) -lt 10 ] || fail "stopping took $((SECONDS - began)) s"

step "up again, without an API key"
unset SEMBLANCE_API_KEY SEMBLANCE_API_KEYS
up
probe similarity "$api" >"$work/fourth.json"
cmp "$work/first.json" "$work/fourth.json" || fail "the answer changed"
probe latency "$api" "$prometheus"
