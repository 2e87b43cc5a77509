#!/bin/bash
# What can be said of the deployment's files without a Docker daemon: `make check` runs it, with the tools of .venv.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

status=0
holds() {
    "$@" && return
    [ "$1" != quietly ] || shift
    echo "deploy/static.sh: found by $1" >&2
    status=1
}
# quietly COMMAND...: what it says only where it fails, for promtool says on standard output what failed.
# shellcheck disable=SC2329  # holds calls it
quietly() {
    local said
    said=$("$@" 2>&1) || { echo "$said" >&2 && return 1; }
}
# The chart with every example of its values; without Helm this says that it was skipped.
# shellcheck disable=SC2329  # holds calls it
kubernetes() {
    local said=0
    python -B scripts/helm.py >&2 || true
    python -B deploy/rendered.py >&2 || said=$?
    [ "$said" = 0 ] || [ "$said" = 77 ]
}

holds check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml docker-compose.gpu.yml
holds check-jsonschema --quiet --check-metaschema deploy/chart/values.schema.json
holds check-jsonschema --quiet --schemafile deploy/chart/values.schema.json deploy/chart/values.yaml deploy/chart/ci/*.yaml
holds kubernetes
holds hadolint Dockerfile
holds shellcheck --external-sources deploy/*.sh scripts/*.sh .ci/run
if sh scripts/ensure.sh promtool prometheus "the check of deploy/prometheus.yml, and of the alerts and their tests"; then
    # Syntax only: the file with the key is in the container alone.
    holds promtool check config --syntax-only deploy/prometheus.yml >/dev/null
    holds quietly promtool check rules deploy/prometheus/rules/*.yml
    holds quietly promtool test rules deploy/prometheus/tests/*.yml
fi
if command -v haproxy >/dev/null; then holds quietly haproxy -c -f deploy/haproxy.cfg; fi  # with deploy/replicas.sh
if command -v amtool >/dev/null; then holds quietly amtool check-config deploy/alertmanager.yml; fi  # with deploy/watch.sh
if docker buildx version >/dev/null 2>&1; then holds quietly docker buildx bake --print image gpu; fi
exit "$status"
