"""What readiness and metrics say of a Redis that nobody asks: it dies, comes back, is full, is a replica."""

import asyncio
import logging
import time

import pytest

from service.engine import breaker
from service.engine.redis_client import RedisClient
from service.observe.telemetry import Telemetry
from service.settings import Settings
from tests.harness.service import NEEDED_SECONDS, Client, RedisServer, Serve

pytestmark = [pytest.mark.anyio, pytest.mark.redis]
CALM = {"redis_timeout_ms": 60_000}
WELL = ("ready", "up", [])
FULL = "redis keeps nothing new (OutOfMemoryError): what it does not have is computed each time"
REPLICA = "redis keeps nothing new (ReadOnlyError): what it does not have is computed each time"
CLUSTER = "redis cannot be read (ClusterCrossSlotError): vectors are computed instead"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "PROBE_SECONDS", 0.05)


async def says(client: Client) -> tuple[str, str, list[str]]:
    body = (await client.get("/health/ready")).json()
    return body["status"], body["redis"], body["reasons"]


async def comes_to_say(client: Client, expected: tuple[str, str, list[str]]) -> None:
    """Wait for readiness to say it, with no request but its own."""
    deadline = time.monotonic() + NEEDED_SECONDS
    while (found := await says(client)) != expected and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert found == expected


async def gauges(client: Client) -> tuple[float, float]:
    return await client.metric("semblance_redis_up"), await client.metric("semblance_redis_writable")


async def test_a_new_connection_sends_at_once_what_is_asked() -> None:
    """Each further round trip would be of the same few milliseconds."""
    received: list[bytes] = []

    async def answer(incoming: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        received.append(await incoming.read(1000))
        out.write(b"+PONG\r\n")
        await incoming.read()
        out.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
        client = RedisClient(Settings(redis_url=url, redis_timeout_ms=60_000), Telemetry(), "works", "fails")
        assert await client.attempt(client.redis.ping)
        await client.aclose()
        server.close()
        await server.wait_closed()
    assert received == [b"*1\r\n$4\r\nPING\r\n"]


async def test_a_redis_that_dies_and_comes_back_is_noticed_though_nobody_asks(
    serve: Serve, redis_server: RedisServer, caplog
) -> None:
    caplog.set_level(logging.INFO, "service.engine.breaker")
    async with serve(redis_url=redis_server.url, **CALM) as client:
        assert (await says(client), await gauges(client)) == (WELL, (1, 1))
        assert await client.metric("semblance_redis_wanted") == 1
        redis_server.kill()
        why = "redis cannot be read (ConnectionRefusedError): vectors are computed instead"
        await comes_to_say(client, ("degraded", "down", [why]))
        assert await gauges(client) == (0, 0)
        redis_server.start()
        await comes_to_say(client, WELL)
        assert await gauges(client) == (1, 1)
    messages = [record.message for record in caplog.records]
    assert messages.count("redis answers") == 2
    assert messages.count("redis does not answer; vectors are computed instead") == 1


async def test_a_redis_that_is_full_or_a_replica_is_told_from_one_that_is_gone(
    serve: Serve, redis_server: RedisServer
) -> None:
    async with serve(redis_url=redis_server.url, **CALM) as client:
        with redis_server.client() as redis:
            redis.config_set("maxmemory", 1)
            await comes_to_say(client, ("degraded", "up", [FULL]))
            assert await gauges(client) == (1, 0)
            redis.config_set("maxmemory", 0)
            await comes_to_say(client, WELL)
            redis.replicaof("127.0.0.1", "1")
            await comes_to_say(client, ("degraded", "up", [REPLICA]))
            redis.replicaof("no", "one")
        await comes_to_say(client, WELL)
        assert await client.metric("semblance_redis_failures_total", kind="error") > 0


async def test_a_redis_in_cluster_mode_is_said_to_be_one(serve: Serve, redis_cluster: RedisServer) -> None:
    async with serve(redis_url=redis_cluster.url, **CALM) as client:
        assert await says(client) == ("degraded", "down", [CLUSTER])
