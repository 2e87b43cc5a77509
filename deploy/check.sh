#!/bin/bash
# Builds the image, brings docker-compose.yml up under another project name and on free ports, and holds it against what
# docs/operating.md says of it. Leaves nothing running.
#
#   deploy/check.sh              with the Docker daemon and the image registry at hand
#   deploy/check.sh --stand-ins  without a registry, on a daemon of its own: see deploy/stand-ins.sh
#   ... --ci                     gives up on a machine that is too slow
#
# Exit code 77: no daemon could be started, or (--ci) not soon enough, so nothing was checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/stand-ins.sh
. deploy/soon.sh

stand_ins=no ci=no
for option in "$@"; do
    case "$option" in
        --stand-ins) stand_ins=yes ;;
        --ci) ci=yes ;;
        *) echo "usage: deploy/check.sh [--stand-ins] [--ci]" >&2 && exit 2 ;;
    esac
done

NO_DAEMON=77
SOON=240  # seconds for daemon and stand-ins; an idle machine needs 90
REPLICA_SECONDS=15  # until one that was killed is back and healthy
MAX_BYTES=170000000  # of the image, without its base and the models

passed=no
work=$(mktemp -d)
chmod 755 "$work"  # the models in it are read by another user
compose() { docker compose --project-name semblance-check "$@"; }
probe() { python3 -B deploy/probe.py "$@"; }
watched() { python3 -B deploy/watched.py "$@"; }
step() { printf '%4ss  %s\n' "$SECONDS" "$*"; }
fail() { echo "FAILED: $*" >&2 && exit 1; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
bytes_of() { docker image inspect "$1" --format '{{.Size}}'; }

finish() {
    local status=$?
    [ $passed = yes ] || [ "$status" != 0 ] || status=143  # a signal ended it, and leaves no status here
    step "taking it down"
    touch "$work/stop"
    [ "$status" = 0 ] || [ "$status" = $NO_DAEMON ] || compose --ansi never logs --tail 20 2>/dev/null || true
    compose unpause >/dev/null 2>&1 || true  # a paused container cannot be stopped
    compose --profile watch --profile replicas down --volumes --timeout 5 >/dev/null 2>&1 || true
    [ $stand_ins = no ] || stop_docker "$work"
    rm -rf "$work"
    step "$([ "$status" = 0 ] && echo "all is well" || echo "failed ($status)")"
    exit "$status"
}
trap finish EXIT

up() {
    compose up --detach --wait --wait-timeout 300 "$@" >"$work/up.log" 2>&1 || { tail -40 "$work/up.log" >&2 && return 1; }
}

# keys_in_redis COUNT: they are written after the answer.
keys_in_redis() {
    local keys
    for _ in $(seq 50); do
        keys=$(compose exec -T redis redis-cli DBSIZE | tr -cd 0-9)
        [ "$keys" = "$1" ] && return
        sleep 0.1
    done
    fail "Redis: expected $1 keys, found $keys"
}

# kill_container ID: as the system would, so that Docker starts it again; after `docker kill` it would not.
kill_container() {
    local pid
    pid=$(docker inspect --format '{{.State.Pid}}' "$1")
    if [ $stand_ins = yes ]; then
        kill -KILL "$pid"
    else  # the daemon's machine may be another
        docker run --rm --pid=host --user 0 --entrypoint sh "${PYTHON_IMAGE:-python:3.11-slim}" -c "kill -KILL $pid"
    fi
}

# Load that goes on meanwhile: load API..., then load_ends. None of its requests may fail.
load() {
    rm -f "$work/stop"
    python3 -B deploy/balance.py "$work/stop" "$@" &
    load=$!
    sleep 1
}
load_ends() {
    sleep 1
    touch "$work/stop"
    wait "$load" || fail "requests failed, or one service answered none"
}

if [ $stand_ins = yes ]; then
    step "a Docker daemon of our own"
    start_docker "$work" || exit $NO_DAEMON
    step "stand-ins for the base images"
    build_stand_ins "$work"
    echo "NOT RUN: the images python, redis, prom/prometheus, haproxy and jaegertracing/all-in-one themselves. Debian's packages stand in for them, deploy/spans.py for Jaeger"
    if [ $ci = yes ] && [ $SECONDS -gt $SOON ]; then
        echo "daemon and stand-ins took $SECONDS s; the rest would take too long" >&2 && exit $NO_DAEMON
    fi
fi
docker info --format 'docker {{.ServerVersion}}, {{.Driver}}, cgroup v{{.CgroupVersion}}'

API_PORT=$(free_port) NEXT_PORT=$(free_port) PROMETHEUS_PORT=$(free_port) TRACES_PORT=$(free_port) PROXY_PORT=$(free_port)
SEMBLANCE_API_KEY="check-$RANDOM$RANDOM$RANDOM$RANDOM"
SEMBLANCE_API_KEYS=check:$(printf %s "$SEMBLANCE_API_KEY" | sha256sum | cut -d ' ' -f 1)
export API_PORT PROMETHEUS_PORT TRACES_PORT PROXY_PORT OTEL_EXPORTER_OTLP_ENDPOINT=http://traces:4318 SEMBLANCE_API_KEY SEMBLANCE_API_KEYS
# A busy machine may keep Redis waiting for 50 ms, and for two seconds nobody would ask it.
export API_MODELS=$work/models SEMBLANCE_DRAIN_SECONDS=2 SEMBLANCE_REDIS_TIMEOUT_MS=1000
# Any other setting comes from a file.
export SEMBLANCE_ENV_FILE=$work/semblance.env
echo 'SEMBLANCE_CORS_ORIGINS=https://app.example' >"$SEMBLANCE_ENV_FILE"
api=http://127.0.0.1:$API_PORT next=http://127.0.0.1:$NEXT_PORT prometheus=http://127.0.0.1:$PROMETHEUS_PORT
# A folder of models that may be changed; one model comes later.
cp -r models "$API_MODELS"
mv "$API_MODELS/avg-sick-tuned" "$work/comes-later"

compose config --quiet
step "image"
compose build --quiet api
base=$(bytes_of "${PYTHON_IMAGE:-python:3.11-slim}") all=$(bytes_of semblance:0.1.0) models=$(du -s --apparent-size -B1 models | cut -f 1)
rest=$((all - base - models))
echo "semblance:0.1.0: $all bytes: base $base, models $models, all else $rest"
[ $rest -lt $MAX_BYTES ] || fail "expected less than $MAX_BYTES bytes beside base and models, found $rest"

step "up, with an API key, and with a collector of traces"
up traces
up
compose ps --format '{{.Service}}: {{.Status}}'

step "the image's packages: those of the lock"
docker buildx build --quiet --target sbom --build-arg "PYTHON_IMAGE=${PYTHON_IMAGE:-python:3.11-slim}" --output "$work" . >/dev/null
compose exec -T api python -c 'from importlib.metadata import distributions as d; [print(i.name, i.version) for i in d()]' >"$work/installed"
probe packages "$work/installed" requirements.txt "$work/sbom.cdx.json"

step "a setting from the file of settings"
probe origin "$api" https://app.example

step "one request"
probe refused "$api"
probe similarity "$api" | tee "$work/first.json"

step "its embeddings in Redis; then what an interaction model says of the pair"
keys_in_redis 2
probe similarity "$api" "A man is playing a guitar on the stage" pwim-sick >"$work/interaction.json"
keys_in_redis 3

step "a service that has forgotten them finds them there"
compose restart --timeout 15 api >/dev/null 2>&1
up
probe similarity "$api" >"$work/again.json"
cmp "$work/first.json" "$work/again.json" || fail "the answer changed"
probe metric "$api" 'semblance_cache_hits_total{tier="redis"}' 2
probe similarity "$api" "A man is playing a guitar on the stage" pwim-sick >"$work/again.json"
cmp "$work/interaction.json" "$work/again.json" || fail "the interaction model's answer changed"
probe metric "$api" 'semblance_cache_hits_total{tier="redis"}' 3

step "latency in Prometheus"
probe latency "$api" "$prometheus"

step "rules and dashboards in Prometheus"
watched rules "$prometheus"
rm -f "$work/stop"
watched load "$api" "$work/stop" &
load=$!
watched panels "$prometheus" 120
step "a bucket of latency leads to a trace"
watched exemplar "$prometheus" "http://127.0.0.1:$TRACES_PORT"
touch "$work/stop"
wait "$load"
if [ $ci = no ]; then
    step "the same without containers, and an alert that reaches a receiver"
    bash deploy/watch.sh "$api" "http://127.0.0.1:$TRACES_PORT"
fi
echo "NOT RUN: the containers of the profile watch (Grafana, Alertmanager)"

step "a Redis that hangs"
compose pause redis >/dev/null 2>&1
probe readiness "$api" degraded  # before any request asks it: a probe in the background finds it out
probe similarity "$api" "A sentence that is in no cache yet"
compose unpause redis >/dev/null 2>&1
# Its health check was paused too, and `up` does not wait for a container that calls itself unhealthy.
for _ in $(seq 30); do
    [ "$(compose ps redis --format '{{.Health}}')" = healthy ] && break
    sleep 1
done
probe readiness "$api" ready
probe similarity "$api" "This one is for a Redis that has come back" >/dev/null

step "nobody is root, nothing is writable, no torch"
for service in api redis prometheus; do
    uid=$(compose exec -T "$service" id -u)
    echo "$service: uid $uid"
    [ "$uid" != 0 ] || fail "$service runs as root"
    ! compose exec -T "$service" sh -c 'touch /etc/written' 2>/dev/null || fail "$service can write to its root"
done
! compose exec -T api python -c 'import torch' 2>/dev/null || fail "torch is in the image"
! compose exec -T api sh -c 'touch /app/models/written' 2>/dev/null || fail "the models can be changed"

step "a model that comes into the mounted folder, and one that is broken"
load "$api"
mv "$work/comes-later" "$API_MODELS/.avg-sick-tuned" && mv "$API_MODELS/.avg-sick-tuned" "$API_MODELS/avg-sick-tuned"
probe reload "$api" avg-sick-tuned added
probe similarity "$api" "A sentence for the model that came" avg-sick-tuned >/dev/null
cp -r "$API_MODELS/avg-sick-tuned" "$API_MODELS/.broken" && truncate -s 1000 "$API_MODELS/.broken/manifest.json"
mv "$API_MODELS/avg-sick-tuned" "$API_MODELS/.before" && mv "$API_MODELS/.broken" "$API_MODELS/avg-sick-tuned"
probe reload "$api" avg-sick-tuned failed
probe similarity "$api" "A sentence for the model that stays" avg-sick-tuned >/dev/null
rm -r "$API_MODELS/avg-sick-tuned" && mv "$API_MODELS/.before" "$API_MODELS/avg-sick-tuned"
probe reload "$api" avg-sick-tuned unchanged
load_ends

step "a new container takes over from the old one, behind a balancer"
old=$(compose ps --quiet api)
load "$api" "$next"
API_PORT=$NEXT_PORT up --no-deps --no-recreate --scale api=2 api
sleep 1
began=$SECONDS
docker stop --time 20 "$old" >/dev/null
[ $((SECONDS - began)) -lt 12 ] || fail "stopping took $((SECONDS - began)) s"
docker rm "$old" >/dev/null
load_ends
API_PORT=$NEXT_PORT api=$next
probe similarity "$api" >"$work/again.json"
cmp "$work/first.json" "$work/again.json" || fail "the answer changed"

step "two workers, without an API key"
unset SEMBLANCE_API_KEY SEMBLANCE_API_KEYS
export SEMBLANCE_WORKERS=2 API_MEMORY=2560m
up
# One worker computes; the other, asked the same on another connection, must find it in Redis.
compose exec -T redis redis-cli FLUSHALL >/dev/null
probe similarity "$api" >"$work/again.json"
cmp "$work/first.json" "$work/again.json" || fail "the answer changed"
keys_in_redis 2
for _ in $(seq 10); do
    probe spread "$api" 32 "A man is playing a guitar on the stage"
    if probe metric "$api" 'semblance_cache_hits_total{tier="redis"}' 2+ 2 2>/dev/null; then break; fi
done
probe metric "$api" 'semblance_cache_hits_total{tier="redis"}' 2+ 1  # requests at the same moment each ask Redis

step "both workers are replaced"
load "$api"
compose kill --signal SIGUSR2 api 2>/dev/null
probe metric "$api" 'semblance_worker_restarts_total{reason="asked"}' 2 240  # each opens all models
load_ends
probe latency "$api" "$prometheus"

step "two replicas behind the proxy; one is killed under load"
unset SEMBLANCE_WORKERS API_MEMORY
compose stop --timeout 20 api >/dev/null 2>&1
up proxy
proxy=http://127.0.0.1:$PROXY_PORT
replica=$(compose --profile replicas ps --quiet replica | sed -n 1p)  # it reads all: docker ends with 255 where its pipe is closed
probe similarity "$proxy" >"$work/again.json"
cmp "$work/first.json" "$work/again.json" || fail "the answer changed"
load "$proxy"
kill_container "$replica"
began=$SECONDS
while [ "$(docker inspect --format '{{.RestartCount}} {{.State.Health.Status}}' "$replica")" != "1 healthy" ]; do
    [ $((SECONDS - began)) -lt 240 ] || fail "the replica is not healthy after 240 s"
    sleep 0.5
done
soon_enough $(((SECONDS - began) * 1000)) $REPLICA_SECONDS "the replica that was killed is healthy"
load_ends
passed=yes
