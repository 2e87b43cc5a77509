# shellcheck shell=bash
# For deploy/check.sh --stand-ins, which sources this: a Docker daemon of its own and base images made of Debian's
# packages, for a machine that reaches Debian's archive and a Python index but no image registry. Root, Debian 12.
#
# What this cannot show: that the real images are pulled, and how they differ (Alpine's libc, their entrypoints).

# start_docker WORK: install what is missing and start a daemon that keeps everything under WORK. Says why it cannot, and
# returns 1; set -e does not hold in a function that is asked for its status.
start_docker() {
    local work=$1
    export DOCKER_CONFIG=$work/config DOCKER_HOST=unix://$work/docker.sock
    [ "$(id -u)" = 0 ] || { echo "a daemon of our own takes root" >&2 && return 1; }
    grep -qs bookworm /etc/os-release || { echo "a daemon of our own takes Debian 12" >&2 && return 1; }
    sh scripts/apt-install.sh docker.io iptables mmdebstrap || return 1
    if ! { docker compose version && docker buildx version; } >/dev/null 2>&1; then compose_from_trixie "$work" || return 1; fi
    setsid dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/dockerd.pid" -H "$DOCKER_HOST" \
        >"$work/dockerd.log" 2>&1 </dev/null &
    for _ in $(seq 100); do
        docker version >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    tail -20 "$work/dockerd.log" >&2
    return 1
}

# compose_from_trixie WORK: Debian 12 has no compose v2; Debian 13's two plugins run on it, unpacked and not installed.
compose_from_trixie() {
    local work=$1 apt=$1/apt options
    mkdir -p "$apt/lists/partial" "$DOCKER_CONFIG/cli-plugins" || return 1
    awk 'NR > 1 && /^$/ { exit } !/^#/' /etc/apt/sources.list.d/debian.sources | sed 's/^Suites:.*/Suites: trixie/' >"$apt/trixie.sources"
    options=(-qq -o "Dir::Etc::sourcelist=$apt/trixie.sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update || return 1
    (cd "$apt" && apt-get "${options[@]}" download docker-compose docker-buildx && for deb in *.deb; do dpkg-deb -x "$deb" unpacked; done) || return 1
    cp "$apt"/unpacked/usr/libexec/docker/cli-plugins/* "$DOCKER_CONFIG/cli-plugins/"
}

# build_stand_ins WORK: python, redis, prometheus, haproxy and a collector of traces (deploy/spans.py) under the tags that
# the Dockerfile and the compose file name.
build_stand_ins() {
    local work=$1 context=$1/stand-in
    mkdir -p "$context/etc/ssl/certs"
    # A machine behind its own certificate authority or package index says so in these two places.
    if [ -e /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt "$context/etc/ssl/certs/"; fi
    if [ -e /etc/pip.conf ]; then cp -L /etc/pip.conf "$context/etc/"; fi
    TMPDIR=/dev/shm mmdebstrap --quiet --mode=root --variant=minbase --dpkgopt=force-unsafe-io \
        --include=python3,python3-venv,python3-pip,ca-certificates bookworm - 2>"$work/mmdebstrap.log" |
        docker import - standin:raw >/dev/null

    docker build -q -t python:3.11-slim -f- "$context" <<'DOCKERFILE'
FROM standin:raw
COPY etc /etc
RUN ln -sf python3 /usr/bin/python && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
CMD ["python3"]
DOCKERFILE
    docker build -q -t redis:7-alpine - <<'DOCKERFILE'
FROM standin:raw
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server
VOLUME /data
WORKDIR /data
CMD ["redis-server"]
DOCKERFILE
    docker build -q -t prom/prometheus:v2.53.0 - <<'DOCKERFILE'
FROM standin:raw
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus wget && install -d -o nobody /prometheus
USER nobody
VOLUME /prometheus
WORKDIR /prometheus
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
DOCKERFILE
    docker build -q -t haproxy:2.8-alpine - <<'DOCKERFILE'
FROM standin:raw
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends haproxy wget
USER haproxy
ENTRYPOINT ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
DOCKERFILE
    docker build -q -t jaegertracing/all-in-one:1.57 -f- deploy <<'DOCKERFILE'
FROM haproxy:2.8-alpine
COPY spans.py /opt/spans.py
USER nobody
WORKDIR /opt
ENTRYPOINT ["python3", "-B", "-c", "from spans import collector; collector('0.0.0.0:4318', '0.0.0.0:16686', '0.0.0.0:14269')"]
DOCKERFILE
}

# stop_docker WORK
stop_docker() {
    local work=$1 daemon
    [ -e "$work/dockerd.pid" ] || return 0
    daemon=$(cat "$work/dockerd.pid")
    kill "$daemon"
    for _ in $(seq 300); do
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.2
    done
    kill -9 "$daemon" 2>/dev/null || true
    ip link delete docker0 2>/dev/null || true
    umount -R "$work"/data/* "$work/data" 2>/dev/null || true
}
