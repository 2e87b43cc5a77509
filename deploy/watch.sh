#!/bin/bash
# Prometheus and Alertmanager as this machine has them (Debian's packages), with the project's rules and dashboards, beside
# a service that answers: every rule is evaluated, every expression of a dashboard has data, and one alert reaches a
# receiver. Leaves nothing running. What could not be run is said, in lines that begin with NOT RUN.
#
#   deploy/watch.sh [API [TRACES]]   without API it starts `python -m service` itself, with PYTHON; TRACES is where the
#                                    collector shows the traces of that API
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
started=()
finish() {
    local status=$?
    touch "$work/stop"
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    [ "$status" = 0 ] || tail -n 15 "$work"/*.log >&2 || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
start() {  # start NAME COMMAND...
    local name=$1
    shift
    "$@" >"$work/$name.log" 2>&1 &
    started+=($!)
}
step() { printf '%4ss  %s\n' "$SECONDS" "$*"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
answers() {  # answers URL: within three minutes
    for _ in $(seq 360); do
        if python3 -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=2)' "$1" 2>/dev/null; then return 0; fi
        sleep 0.5
    done
    echo "no answer: $1" >&2
    return 1
}
watched() { python3 -B deploy/watched.py "$@"; }

sh scripts/ensure.sh prometheus prometheus "rules and dashboards beside a live Prometheus" || { echo "NOT RUN: rules, dashboards, alerts" && exit 0; }
told=no
if sh scripts/ensure.sh prometheus-alertmanager prometheus-alertmanager "an alert that reaches a receiver"; then told=yes; fi

if [ $# = 0 ]; then
    step "a service that sends traces to a collector"
    port=$(free_port) TRACES_PORT=$(free_port)
    traces=http://127.0.0.1:$TRACES_PORT
    start collector python3 -B deploy/watched.py collector "127.0.0.1:$TRACES_PORT"
    api=http://127.0.0.1:$port
    SEMBLANCE_PORT=$port SEMBLANCE_MODELS=avg-sick,pwim-sick SEMBLANCE_DEFAULT_SIMILARITY=avg-sick \
        SEMBLANCE_DEFAULT_RANK=avg-sick OTEL_EXPORTER_OTLP_ENDPOINT=$traces OTEL_BSP_SCHEDULE_DELAY=500 start service "${PYTHON:-.venv/bin/python}" -m service
else
    api=$1 traces=${2:-}
fi
answers "$api/health/ready"

PROMETHEUS_PORT=$(free_port) ALERTS_PORT=$(free_port) RECEIVER_PORT=$(free_port)
prometheus=http://127.0.0.1:$PROMETHEUS_PORT
# The project's own file, but for addresses; beside the service there is one that nobody serves, for SemblanceDown.
(umask 077 && printf %s "${SEMBLANCE_API_KEY:-}" >"$work/api-key")
sed -e "s|\"api:8000\"|\"${api#http://}\", \"127.0.0.1:1\"|" -e "s|/tmp/api-key|$work/api-key|" \
    -e "s|/etc/prometheus/rules|$PWD/deploy/prometheus/rules|" -e "s|alertmanager:9093|127.0.0.1:$ALERTS_PORT|" \
    deploy/prometheus.yml >"$work/prometheus.yml"
if [ $told = yes ]; then
    sed "s|- name: on-call|&\n    webhook_configs: [{url: \"http://127.0.0.1:$RECEIVER_PORT/\"}]|" deploy/alertmanager.yml >"$work/alertmanager.yml"
    start receiver python3 -B deploy/watched.py receiver "$RECEIVER_PORT" "$work/alerts"
    start alertmanager prometheus-alertmanager --config.file="$work/alertmanager.yml" --storage.path="$work/alertmanager" \
        --cluster.listen-address= --web.listen-address="127.0.0.1:$ALERTS_PORT"
    answers "http://127.0.0.1:$ALERTS_PORT/-/ready"
fi
start prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" --enable-feature=exemplar-storage \
    --web.listen-address="127.0.0.1:$PROMETHEUS_PORT"
answers "$prometheus/-/ready"
start load python3 -B deploy/watched.py load "$api" "$work/stop"

step "every rule is evaluated"
watched rules "$prometheus"
step "every panel has data"
watched panels "$prometheus" 120
if [ -n "$traces" ]; then
    step "a bucket of latency leads to a trace"
    watched exemplar "$prometheus" "$traces"
else
    echo "NOT RUN: traces (no collector was named)"
fi
if [ $told = yes ]; then
    step "an alert reaches a receiver"
    watched caught "$work/alerts" SemblanceDown
else
    echo "NOT RUN: an alert that reaches a receiver (no prometheus-alertmanager)"
fi
echo "NOT RUN: Grafana itself (its image is needed); what its panels ask was asked above"
echo "NOT RUN: the images of Prometheus, Alertmanager and Jaeger; Debian's packages stood in for them, deploy/spans.py for Jaeger"
step "all is well"
