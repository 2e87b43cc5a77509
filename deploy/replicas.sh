#!/bin/bash
# HAProxy as this machine has it (Debian's package), with the project's configuration, before two services as the compose
# file's profile `replicas` has them: one is killed under load, no request may fail, and it answers again within 15 s.
# Leaves nothing running.
#
#   deploy/replicas.sh   starts `python -m service` with PYTHON
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/soon.sh

SOON=15  # seconds until a replica that was killed answers again
work=$(mktemp -d)
started=()
finish() {
    local status=$?
    touch "$work/stop" "$work/end"
    for pid in "${started[@]}" $(cat "$work"/*.pid 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    [ "$status" = 0 ] || tail -n 15 "$work"/*.log >&2 || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
step() { printf '%4ss  %s\n' "$SECONDS" "$*"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
ready() { python3 -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1] + "/health/ready", timeout=2)' "$1" 2>/dev/null; }
answers() {  # answers API: within three minutes
    for _ in $(seq 360); do
        if ready "$1"; then return 0; fi
        sleep 0.5
    done
    echo "no answer: $1" >&2
    return 1
}
service() {  # service NAME PORT: as with Docker's restart policy, begun again whenever it ends
    while [ ! -e "$work/end" ]; do
        SEMBLANCE_PORT=$2 SEMBLANCE_MODELS=avg-sick,pwim-sick SEMBLANCE_DEFAULT_SIMILARITY=avg-sick \
            SEMBLANCE_DEFAULT_RANK=avg-sick SEMBLANCE_LOG_LEVEL=warning "${PYTHON:-.venv/bin/python}" -m service >>"$work/$1.log" 2>&1 &
        echo $! >"$work/$1.pid"
        wait $! 2>/dev/null || true
    done
}

sh scripts/ensure.sh haproxy haproxy "two replicas behind a proxy" || { echo "NOT RUN: two replicas behind a proxy" && exit 0; }

step "two services and the proxy"
ports=("$(free_port)" "$(free_port)") proxy_port=$(free_port)
for number in 0 1; do
    service "replica-$number" "${ports[number]}" &
    started+=($!)
done
proxy=http://127.0.0.1:$proxy_port killed=http://127.0.0.1:${ports[1]}
# The project's own file, but for addresses.
sed -e "s|bind :8000|bind 127.0.0.1:$proxy_port|" -e '/^resolvers/,/^$/d' \
    -e "s|server-template .*|server a 127.0.0.1:${ports[0]}\n    server b 127.0.0.1:${ports[1]}|" deploy/haproxy.cfg >"$work/haproxy.cfg"
haproxy -db -f "$work/haproxy.cfg" >"$work/haproxy.log" 2>&1 &
started+=($!)
for number in 0 1; do answers "http://127.0.0.1:${ports[number]}"; done
answers "$proxy"

step "one address with too many connections, and half a head"
python3 -B deploy/probe.py crowd "$proxy"

step "one replica is killed under load"
python3 -B deploy/balance.py "$work/stop" "$proxy" &
load=$!
sleep 1
began=$(date +%s%N)
kill -KILL "$(cat "$work/replica-1.pid")"
while ready "$killed"; do sleep 0.05; done
until ready "$killed"; do
    [ $((($(date +%s%N) - began) / 1000000000)) -lt $((4 * SOON)) ] || break
    sleep 0.1
done
milliseconds=$((($(date +%s%N) - began) / 1000000))
python3 -B deploy/probe.py served "$killed" /similarity
touch "$work/stop"
wait "$load" || { echo "FAILED: requests failed" >&2 && exit 1; }
soon_enough $milliseconds $SOON "the replica that was killed is healthy"
echo "NOT RUN: HAProxy's own image; $(haproxy -v | head -n 1) of this machine stood in for it"
step "all is well"
