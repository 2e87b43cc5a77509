"""One rate limit for several processes, in a real Redis that is killed and comes back."""

import pytest
from redis.exceptions import ResponseError
from throttled.exceptions import StoreUnavailableError

from service.errors import RateLimited
from service.http.rate_limit import RateLimit
from service.observe.telemetry import Telemetry
from service.settings import Settings
from tests.harness.requests import GOOD
from tests.harness.service import RedisServer, Serve

pytestmark = pytest.mark.anyio


def limit_of(redis_server: RedisServer, milliseconds: int, rate: str = "2/hour") -> tuple[RateLimit, Telemetry]:
    telemetry = Telemetry()
    settings = Settings(rate_limit=rate, redis_url=redis_server.url, redis_timeout_ms=milliseconds)  # type: ignore[arg-type]
    return RateLimit(settings, telemetry), telemetry


async def test_without_redis_each_counts_for_itself_until_it_is_back(redis_server: RedisServer, caplog) -> None:
    caplog.set_level("INFO")
    limit, telemetry = limit_of(redis_server, 60_000)
    shared = limit.shared
    assert shared is not None
    await limit.take("alice")
    redis_server.kill()
    for _ in range(2):
        await limit.take("alice")  # its whole allowance again: safe, and said aloud
    with pytest.raises(RateLimited):
        await limit.take("alice")
    assert telemetry.registry.get_sample_value("semblance_redis_failures_total", {"kind": "error"}) == 1
    (problem,) = shared.problems  # the kind is the system's: a connection is reset, closed or refused
    assert problem.startswith("redis does not count requests (Connection")
    redis_server.start()
    with pytest.raises(RateLimited):
        await limit.take("alice")  # nobody asks yet
    await shared.probe()
    assert shared.problems == []
    await limit.take("alice")
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", "redis counts requests"),
        ("WARNING", "redis does not count requests; each process counts its own"),
        ("INFO", "redis counts requests"),
    ]
    await shared.close()


async def test_a_redis_that_hangs_delays_few_requests(redis_server: RedisServer) -> None:
    limit, telemetry = limit_of(redis_server, 50, "100/hour")
    with redis_server.client() as client:
        client.execute_command("CLIENT", "PAUSE", 60_000)
    for _ in range(10):
        await limit.take("alice")
    assert telemetry.registry.get_sample_value("semblance_redis_failures_total", {"kind": "timeout"}) == 1
    assert limit.shared is not None
    await limit.shared.close()


async def test_the_service_refuses_by_the_shared_count(serve: Serve, redis_server: RedisServer) -> None:
    shared = {"rate_limit": "2/hour", "redis_url": redis_server.url, "redis_timeout_ms": 60_000}
    async with serve(**shared) as one, serve(**shared) as two:
        statuses = [
            (await client.post("/similarity", json=GOOD["/similarity"])).status_code for client in (one, two, one, two)
        ]
        assert statuses == [200, 200, 429, 429]
        assert await two.metric("semblance_rate_limited_total") == 1
    with redis_server.client() as client:
        keys = client.keys()
        assert keys
        assert all(key.startswith(b"semblance:") and b"127.0.0.1" not in key for key in keys)
        assert all(0 < client.ttl(key) <= 3600 for key in keys)


async def test_limits_that_differ_count_apart(redis_server: RedisServer) -> None:
    for rates in (("1/minute", "600/minute"), ("9/hour", "100/second")):
        limits = [limit_of(redis_server, 60_000, rate)[0] for rate in rates]
        for limit in limits:
            assert limit.shared is not None
            await limit.shared.probe()
            await limit.take("alice")
        await limits[1].take("alice")  # the other one's count says nothing of this
        for limit in limits:
            assert limit.shared is not None
            assert limit.shared.problems == []
            await limit.shared.close()


@pytest.mark.parametrize("write", [("SET", "nonsense"), ("SET", ""), ("RPUSH", "1")])
async def test_what_is_no_count_is_none_and_is_written_over(redis_server: RedisServer, write: tuple[str, str]) -> None:
    limit, telemetry = limit_of(redis_server, 60_000)
    assert limit.shared is not None
    await limit.take("alice")
    with redis_server.client() as client:
        (name,) = client.keys()
        client.delete(name)
        client.execute_command(write[0], name, write[1])
    for _ in range(2):
        await limit.take("alice")
    with pytest.raises(RateLimited):
        await limit.take("alice")
    assert limit.shared.problems == []
    assert telemetry.registry.get_sample_value("semblance_redis_failures_total", {"kind": "error"}) in (None, 0)
    await limit.shared.close()


async def test_a_refused_command_is_named_by_its_kind(redis_server: RedisServer) -> None:
    limit, _ = limit_of(redis_server, 60_000)
    assert limit.shared is not None
    error = ResponseError("something new")

    async def fails() -> None:
        raise StoreUnavailableError("unavailable") from error

    await limit.shared._client.attempt(fails)
    assert limit.shared.problems == ["redis does not count requests (ResponseError): each process counts its own"]
    await limit.shared.close()


async def test_who_may_write_to_redis_shuts_nobody_out(redis_server: RedisServer) -> None:
    names = []
    for secret in ("one secret of 32 characters here", "another secret of 32 characters!"):
        shared = {"redis_url": redis_server.url, "redis_timeout_ms": 60_000, "redis_secret": secret}
        settings = Settings(rate_limit="2/hour", **shared)  # type: ignore[arg-type]
        telemetry = Telemetry()
        limit = RateLimit(settings, telemetry)
        await limit.take("alice")
        with redis_server.client() as client:
            names += [name for name in client.keys("*rate*") if name not in names]
            for name in names:
                client.set(name, "1e15")  # an allowance that never comes back
        await limit.take("alice")
        assert telemetry.registry.get_sample_value("semblance_redis_failures_total", {"kind": "garbage"}) == 1
        assert limit.shared is not None
        await limit.shared.close()
    assert len(names) == 2
