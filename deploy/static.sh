#!/bin/bash
# What can be said of the deployment's files without a Docker daemon: `make check` runs it, with the tools of .venv.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. deploy/record.sh

status=0
holds() {
    "$@" && return
    echo "deploy/static.sh: found by $1" >&2
    status=1
}

holds check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml
holds hadolint Dockerfile
holds shellcheck --external-sources deploy/*.sh scripts/*.sh .ci/run
if sh scripts/ensure.sh promtool prometheus "the check of deploy/prometheus.yml"; then
    # Syntax only: the file with the key is in the container alone.
    holds promtool check config --syntax-only deploy/prometheus.yml >/dev/null
fi
changed_since_checked
exit "$status"
