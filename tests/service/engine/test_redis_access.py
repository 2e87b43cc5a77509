"""A real Redis over TLS, and one whose user may do no more than the service needs: shared, counted in, told of."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import redis

from service.engine.redis_cache import RedisCache
from service.engine.vector_codec import VectorSpace
from service.errors import RateLimited
from service.http.rate_limit import RateLimit
from service.observe.telemetry import Telemetry
from service.settings import Settings
from tests.harness.service import NEEDED_SECONDS, RedisServer

pytestmark = [pytest.mark.anyio, pytest.mark.redis]
VECTORS = {(number,): np.full((1, 4), number, np.float32) for number in range(60)}
SPACE = VectorSpace("f" * 64, 4)
# What docs/caching.md says that the service's user may do.
MAY = ("+get", "+mget", "+set", "+del", "+evalsha", "+script|load", "+time")
USER = ("on", ">hush", "resetkeys", "~semblance:*", *MAY)


class TlsServer(RedisServer):
    """A server that is reached over TLS alone."""

    def __init__(self, folder: Path, keys: Path) -> None:
        self.keys = keys
        files = ("--tls-cert-file", str(keys / "server.pem"), "--tls-key-file", str(keys / "server.key"))
        super().__init__(folder, *files, "--tls-ca-cert-file", str(keys / "ca.pem"), "--tls-auth-clients", "no")

    def start(self) -> None:
        self._options += ("--port", "0", "--tls-port", str(self.port))
        self.url = f"rediss://127.0.0.1:{self.port}/0"
        super().start()

    def client(self) -> redis.Redis:
        return redis.Redis("127.0.0.1", self.port, ssl=True, ssl_ca_certs=str(self.keys / "ca.pem"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority, and a server's certificate by it."""
    if shutil.which("openssl") is None or shutil.which("redis-server") is None:
        pytest.skip("no openssl or redis-server on the PATH: apt-get install openssl redis-server")
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


def settings_of(url: str) -> Settings:
    return Settings(redis_url=url, redis_timeout_ms=int(3000 * NEEDED_SECONDS), rate_limit="3/hour")  # type: ignore[arg-type]


def cache_of(url: str) -> RedisCache:
    return RedisCache(settings_of(url), Telemetry())


async def says(url: str, problem: str) -> None:
    """What a new client says after a probe."""
    cache = cache_of(url)
    await cache.probe()
    assert cache.problems == [problem]
    await cache.close()
    await asyncio.sleep(0.1)  # asyncio closes a connection whose handshake failed some turns later


async def are_shared(url: str) -> None:
    """What one process keeps another finds, and both have one count of requests."""
    one, other = cache_of(url), cache_of(url)
    for cache in (one, other):
        await cache.probe()
        assert cache.problems == []
    one.put_many(SPACE, VECTORS)
    await asyncio.gather(*one._writes)
    vectors = await other.get_many(SPACE, [*VECTORS, (1000,)])
    assert {key: vector.tolist() for key, vector in vectors.items()} == {k: v.tolist() for k, v in VECTORS.items()}
    limits = [RateLimit(settings_of(url), Telemetry()) for _ in range(2)]
    counts = [limit.shared for limit in limits if limit.shared is not None]
    for shared in counts:
        await shared.probe()
        assert shared.problems == []
    for number in range(3):
        await limits[number % 2].take("alice")
    for limit in limits:
        with pytest.raises(RateLimited):
            await limit.take("alice")
        await limit.take("bob")
    for each in (one, other, *counts):
        await each.close()


def cannot_be_read(why: str) -> str:
    return f"redis cannot be read ({why}): vectors are computed instead"


async def test_tls_with_an_authority_of_ones_own(tmp_path: Path, keys: Path) -> None:
    server = TlsServer(tmp_path, keys)
    try:
        await are_shared(f"{server.url}?ssl_ca_certs={keys / 'ca.pem'}")
        await says(server.url, cannot_be_read("SSLCertVerificationError"))
    finally:
        server.kill()


async def test_a_user_who_may_do_what_the_service_does(redis_server: RedisServer) -> None:
    url = redis_server.url.replace("//", "//semblance:hush@")
    with redis_server.client() as client:
        client.execute_command("ACL SETUSER", "semblance", *USER)
        await are_shared(url)
        client.execute_command("ACL SETUSER", "semblance", "-set")
        await says(url, "redis keeps nothing new (NoPermissionError): what it does not have is computed each time")
        client.execute_command("ACL SETUSER", "semblance", "-mget")
        await says(url, cannot_be_read("NoPermissionError"))
    await says(url.replace("hush", "wrong"), cannot_be_read("AuthenticationError"))


async def test_what_a_server_refuses_is_said_by_its_kind(redis_server: RedisServer) -> None:
    """None of these is an address that does not fit: the server says so, in words that are not shown."""
    url = redis_server.url
    await says(url.rpartition("/")[0] + "/99", cannot_be_read("ResponseError"))
    await says(url.replace("//", "//:hush@"), cannot_be_read("AuthenticationError"))
    await says("redis://127.0.0.1:1/0", cannot_be_read("ConnectionRefusedError"))
    with redis_server.client() as client:
        client.config_set("min-replicas-to-write", 1)
        few = "redis keeps nothing new (ResponseError NOREPLICAS): what it does not have is computed each time"
        await says(url, few)
        client.config_set("min-replicas-to-write", 0)
        client.config_set("replica-serve-stale-data", "no")
        client.replicaof("127.0.0.1", 1)
        await says(url, cannot_be_read("MasterDownError"))
        client.replicaof("no", "one")
        client.config_set("requirepass", "hush")
        await says(url, cannot_be_read("AuthenticationError"))
        client.config_set("requirepass", "")
