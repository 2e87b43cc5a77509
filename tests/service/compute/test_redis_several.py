"""Real clusters, sentinels, TLS and users: found, shared, counted in, and told of when they fail."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from service.compute.cache import Space
from service.compute.redis_cache import RedisCache
from service.errors import RateLimited
from service.http.rate_limit import RateLimit, SharedCounts
from service.observe.telemetry import Telemetry
from tests.service.conftest import NEEDED_SECONDS, RedisServer, Serve, free_port

pytestmark = [pytest.mark.anyio, pytest.mark.redis]
SENTENCES = [f"{a} {b} {c}" for a in ("man", "dog", "cat") for b in ("plays", "runs") for c in ("in", "on", "by")]
VECTORS = {(number,): np.full((1, 4), number, np.float32) for number in range(60)}
ALL = [float(number) for number in range(60)]
SPACE = Space("f" * 64, 4)
NAME = "vectors"  # that sentinels know the master by
# What docs/caching.md says that the service's user may do.
USER = (
    "on",
    ">hush",
    "resetkeys",
    "~semblance:*",
    "+get",
    "+mget",
    "+set",
    "+del",
    "+evalsha",
    "+script|load",
    "+time",
)
OF_A_CLUSTER = ("+command", "+cluster|slots", "+cluster|info")


class TlsServer(RedisServer):
    """A server that is reached over TLS alone."""

    def __init__(self, folder: Path, keys: Path, *options: str) -> None:
        self.keys = keys
        files = ("--tls-cert-file", str(keys / "server.pem"), "--tls-key-file", str(keys / "server.key"))
        trust = ("--tls-ca-cert-file", str(keys / "ca.pem"), "--tls-auth-clients", "no")
        super().__init__(folder, *files, *trust, *options)

    def start(self) -> None:
        self._options += ("--port", "0", "--tls-port", str(self.port))
        self.url = f"rediss://127.0.0.1:{self.port}/0"
        super().start()

    def client(self) -> redis.Redis:
        return redis.Redis("127.0.0.1", self.port, ssl=True, ssl_ca_certs=str(self.keys / "ca.pem"))


class SentinelServer(RedisServer):
    """A sentinel that watches one master."""

    def __init__(self, folder: Path, master: RedisServer) -> None:
        self._file = folder / "sentinel.conf"
        self._file.write_text(f"sentinel monitor {NAME} 127.0.0.1 {master.port} 1\n")
        super().__init__(folder)

    def command(self) -> list[str | Path]:
        return ["redis-server", self._file, "--sentinel", "--port", str(self.port), "--bind", "127.0.0.1"]


class TlsSentinel(TlsServer):
    """A sentinel over TLS, before a master over TLS."""

    def __init__(self, folder: Path, keys: Path, master: RedisServer) -> None:
        self._file = folder / "sentinel.conf"
        self._file.write_text(f"sentinel monitor {NAME} 127.0.0.1 {master.port} 1\n")
        super().__init__(folder, keys, "--tls-replication", "yes")

    def command(self) -> list[str | Path]:
        name, *rest = super().command()
        return [name, self._file, "--sentinel", *rest]


@pytest.fixture(autouse=True)
def no_server() -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on the PATH: apt-get install redis-server")


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + NEEDED_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def asked(server: RedisServer, *command: object) -> str:
    with server.client() as client:
        return str(client.execute_command(*command))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[RedisServer]]:
    """Three nodes with a third of the slots each."""
    nodes, buses = [], []
    try:
        for number in range(3):
            (folder := tmp_path / str(number)).mkdir()
            buses.append(str(free_port()))
            nodes.append(RedisServer(folder, "--cluster-enabled", "yes", "--cluster-port", buses[-1]))
        for number, node in enumerate(nodes):
            asked(node, "CLUSTER SET-CONFIG-EPOCH", number + 1)
            asked(node, "CLUSTER ADDSLOTSRANGE", number * 5462, min(16384, (number + 1) * 5462) - 1)
            for other, bus in zip(nodes[:number], buses, strict=False):
                asked(node, "CLUSTER MEET", "127.0.0.1", other.port, bus)
        for node in nodes:
            wait_for(lambda node=node: "'cluster_state': 'ok'" in asked(node, "CLUSTER INFO"), "a cluster")
        yield nodes
    finally:
        for node in nodes:
            node.kill()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer, RedisServer]]:
    """A sentinel, the master that it watches, and a replica."""
    for name in ("master", "replica", "sentinel"):
        (tmp_path / name).mkdir()
    servers = [RedisServer(tmp_path / "master", "--repl-diskless-sync-delay", "0")]
    try:
        master = servers[0]
        servers.append(RedisServer(tmp_path / "replica", "--replicaof", f"127.0.0.1 {master.port}"))
        wait_for(lambda: "master_link_status:up" in asked_info(servers[1]), "a replica")
        servers.append(SentinelServer(tmp_path / "sentinel", master))
        yield servers[2], master, servers[1]
    finally:
        for server in servers:
            server.kill()


def asked_info(server: RedisServer) -> str:
    with server.client() as client:
        return "\n".join(f"{name}:{value}" for name, value in client.info("replication").items())


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority, and a server's certificate by it."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on the PATH: apt-get install openssl")
    folder = tmp_path_factory.mktemp("keys")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    new = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for line in (
        f"req -x509 {new} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem",
        f"req {new} -subj /CN=server -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.pem",
    ):
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)
    return folder


def url_of(nodes: list[RedisServer], login: str = "") -> str:
    return f"redis+cluster://{login}" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)


def cache_of(url: str, **options: Any) -> RedisCache:
    return RedisCache(url, "", Telemetry(), timeout_seconds=3 * NEEDED_SECONDS, ttl_seconds=100, **options)


async def comes_to_say(cache: RedisCache, *problems: str) -> None:
    """Probe until it says this."""
    deadline = time.monotonic() + NEEDED_SECONDS
    while True:
        await cache.probe()
        if cache.problems == list(problems) or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.05)
    assert cache.problems == list(problems)


async def says(url: str, problem: str, **options: Any) -> None:
    """What a new client says after a probe."""
    cache = cache_of(url, **options)
    await cache.probe()
    assert cache.problems == [problem]
    await cache.close()
    await asyncio.sleep(0.1)  # asyncio closes a connection whose handshake failed some turns later


async def kept(cache: RedisCache) -> None:
    cache.put_many(SPACE, VECTORS)
    await asyncio.gather(*cache._writes)
    assert cache.problems == []


async def found(cache: RedisCache) -> list[float]:
    vectors = await cache.get_many(SPACE, [*VECTORS, (1000,)])
    return [float(vector[0, 0]) for vector in vectors.values()]


async def are_shared(url: str, **options: Any) -> None:
    """What one process keeps another finds, all of it."""
    one, other = cache_of(url, **options), cache_of(url, **options)
    for cache in (one, other):
        await cache.probe()
        assert cache.problems == []
    await kept(one)
    assert await found(other) == ALL
    for cache in (one, other):
        await cache.close()


async def are_counted_together(url: str, authority: Path | None = None) -> None:
    """Two processes have one count."""
    counts = [
        SharedCounts(
            "3/hour", Telemetry(), url=url, address="", timeout_seconds=3 * NEEDED_SECONDS, authority=authority
        )
        for _ in range(2)
    ]
    limits = [RateLimit("3/hour", Telemetry(), shared) for shared in counts]
    for shared in counts:
        await shared.probe()
        assert shared.problems == []
    for number in range(3):
        await limits[number % 2].take("alice")
    for limit in limits:
        with pytest.raises(RateLimited):
            await limit.take("alice")
        await limit.take("bob")
    for shared in counts:
        await shared.close()


def cannot_be_read(why: str) -> str:
    return f"redis cannot be read ({why}): vectors are computed instead"


async def test_a_cluster_shares_vectors_over_all_its_nodes(cluster: list[RedisServer]) -> None:
    await are_shared(url_of(cluster[:1]))  # one node tells the others
    assert all(int(asked(node, "DBSIZE")) > 0 for node in cluster)
    assert sum(int(asked(node, "DBSIZE")) for node in cluster) == len(VECTORS)


async def test_a_service_with_a_cluster(serve: Serve, cluster: list[RedisServer]) -> None:
    shared = {"redis_timeout_ms": 60_000, "cache": "redis", "cache_bytes": 0, "redis_url": url_of(cluster)}
    bodies = []
    for tier, count in (("misses", len(SENTENCES)), ("hits", len(SENTENCES))):
        async with serve(**shared, rate_limit="1000/hour") as client:
            ready = (await client.get("/health/ready")).json()
            assert (ready["status"], ready["redis"], ready["reasons"]) == ("ready", "up", [])
            answer = await client.post("/embed", json={"sentences": SENTENCES})
            bodies.append((answer.status_code, answer.content))
            assert await client.metric(f"semblance_cache_{tier}_total", tier="redis") == count
    assert bodies[0] == bodies[1]


async def test_a_cluster_counts_requests(cluster: list[RedisServer]) -> None:
    await are_counted_together(url_of(cluster))


async def test_a_cluster_without_one_of_its_nodes_is_told_and_used_again(cluster: list[RedisServer]) -> None:
    cache = cache_of(url_of(cluster))
    await cache.probe()
    await kept(cache)
    cluster[1].kill()
    await comes_to_say(cache, cannot_be_read("ConnectionError"))
    assert await found(cache) == []
    cluster[1].start()
    await comes_to_say(cache)
    await kept(cache)
    assert await found(cache) == ALL
    await cache.close()


async def test_many_requests_at_once_wait_for_a_connection(cluster: list[RedisServer]) -> None:
    cache = cache_of(url_of(cluster))
    await cache.probe()
    await kept(cache)
    few = [*VECTORS][:3]
    answers = await asyncio.gather(*(cache.get_many(SPACE, few) for _ in range(100)))
    assert [[*answer] for answer in answers] == [few] * 100
    assert cache.problems == []
    await cache.close()


async def test_a_server_of_another_kind_than_the_address_says(redis_server: RedisServer) -> None:
    await says(url_of([redis_server]), cannot_be_read("it is not in cluster mode"))
    await says(f"redis+sentinel://127.0.0.1:{redis_server.port}/{NAME}", cannot_be_read("ResponseError"))


async def test_the_master_that_sentinels_name(watched: tuple[RedisServer, RedisServer, RedisServer]) -> None:
    sentinel, master, replica = watched
    url = f"redis+sentinel://127.0.0.1:{free_port()},127.0.0.1:{sentinel.port}/{NAME}/0"  # the first one is away
    await are_shared(url)
    await are_counted_together(url)
    await says(url.replace(NAME, "another"), cannot_be_read("no sentinel knows a master of this name that is up"))
    wait_for(lambda: str(replica.port) in asked(sentinel, "SENTINEL REPLICAS", NAME), "a replica at the sentinel")
    cache = cache_of(url)
    await cache.probe()
    asked(sentinel, "SENTINEL FAILOVER", NAME)
    wait_for(lambda: str(replica.port) in asked(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME", NAME), "a new master")
    master.kill()
    await comes_to_say(cache)
    asked(replica, "FLUSHALL")
    await kept(cache)
    assert await found(cache) == ALL
    assert int(asked(replica, "DBSIZE")) == len(VECTORS)
    await cache.close()


async def test_tls_with_an_authority_of_ones_own(tmp_path: Path, keys: Path) -> None:
    server = TlsServer(tmp_path, keys)
    try:
        await are_shared(server.url, authority=keys / "ca.pem")
        await are_counted_together(server.url, keys / "ca.pem")
        await says(server.url, cannot_be_read("its certificate is not trusted"))
    finally:
        server.kill()


async def test_sentinels_over_tls(tmp_path: Path, keys: Path) -> None:
    (folder := tmp_path / "sentinel").mkdir()
    servers: list[RedisServer] = [TlsServer(tmp_path, keys)]
    try:
        servers.append(TlsSentinel(folder, keys, servers[0]))
        await are_shared(f"rediss+sentinel://127.0.0.1:{servers[1].port}/{NAME}", authority=keys / "ca.pem")
    finally:
        for server in servers:
            server.kill()


async def test_a_cluster_over_tls(tmp_path: Path, keys: Path) -> None:
    bus = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--tls-cluster", "yes")
    server = TlsServer(tmp_path, keys, *bus)
    try:
        asked(server, "CLUSTER ADDSLOTSRANGE", 0, 16383)
        wait_for(lambda: "'cluster_state': 'ok'" in asked(server, "CLUSTER INFO"), "a cluster")
        url = f"rediss+cluster://127.0.0.1:{server.port}"
        await are_shared(url, authority=keys / "ca.pem")
        await says(url, cannot_be_read("its certificate is not trusted"))
    finally:
        server.kill()


async def test_a_user_who_may_do_what_the_service_does(redis_server: RedisServer) -> None:
    asked(redis_server, "ACL SETUSER", "semblance", *USER)
    url = redis_server.url.replace("//", "//semblance:hush@")
    await are_shared(url)
    await are_counted_together(url)
    asked(redis_server, "ACL SETUSER", "semblance", "-set")
    await says(url, "redis keeps nothing new (its user may not): what it does not have is computed each time")
    asked(redis_server, "ACL SETUSER", "semblance", "-mget")
    await says(url, cannot_be_read("its user may not"))
    await says(url.replace("hush", "wrong"), cannot_be_read("AuthenticationError"))


async def test_a_user_of_a_cluster(cluster: list[RedisServer]) -> None:
    for node in cluster:
        asked(node, "ACL SETUSER", "semblance", *USER, *OF_A_CLUSTER)
    await are_shared(url_of(cluster, "semblance:hush@"))
    await are_counted_together(url_of(cluster, "semblance:hush@"))
