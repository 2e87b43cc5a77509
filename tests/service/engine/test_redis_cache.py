"""A real Redis: what lies in it, and what happens when it refuses, hangs, dies or holds garbage."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest
import redis

from core.manifest import Manifest
from service.engine import breaker, redis_cache
from service.engine.breaker import Breaker
from service.engine.redis_cache import RedisCache
from service.engine.redis_client import RedisClient
from service.engine.vector_codec import VectorSpace, name_of
from service.observe.telemetry import Telemetry
from service.settings import Settings
from tests.harness import fakes
from tests.harness.service import NEEDED_SECONDS, Client, Serve, free_port, until

pytestmark = pytest.mark.anyio
BODY = {"pairs": [{"a": "a man plays", "b": "the dog runs"}, {"a": "a man plays", "b": "xylophone"}]}
DISTINCT = 3
SPACE = VectorSpace("f" * 64, 4)
SECRET = "hush hush hush hush"
ONLY_REDIS = {"cache": "redis", "cache_bytes": 0, "redis_timeout_ms": 60_000}


async def ask(client: Client) -> bytes:
    response = await client.post("/similarity", json=BODY)
    assert response.status_code == 200
    return response.content


async def failures(client: Client, kind: str) -> float:
    return await client.metric("semblance_redis_failures_total", kind=kind)


@pytest.fixture(scope="module")
async def plain(serve: Serve) -> bytes:
    """The answer without any cache."""
    async with serve(cache_bytes=0) as client:
        return await ask(client)


# What needs no Redis: nobody listens there.


async def test_a_refusing_redis_slows_nothing_and_changes_nothing(serve: Serve, plain: bytes, caplog) -> None:
    caplog.set_level(logging.INFO, "service.engine.breaker")
    url = f"redis://user:hush@127.0.0.1:{free_port()}/0"
    async with serve(redis_url=url, **ONLY_REDIS) as client:
        for _ in range(50):
            assert await ask(client) == plain
        assert await client.metric("semblance_redis_up") == 0
        assert await failures(client, "error") == 1
        assert client.app.service.cache.remote._writes == set()
        ready = await client.get("/health/ready")
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    assert ready.json()["redis"] == "down"
    assert [record.message for record in caplog.records] == ["redis does not answer; vectors are computed instead"]
    assert "hush" not in str(caplog.records[0].__dict__)


@pytest.mark.redis
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"redis_secret": SECRET}),
        ({"redis_secret": SECRET}, {"redis_secret": SECRET + "!"}),
        ({"redis_secret": SECRET}, {}),
    ],
)
async def test_what_was_kept_under_other_settings_is_a_miss_and_overwritten(
    serve: Serve, redis_server, plain: bytes, before, after
) -> None:
    """Among them what anybody could have forged: it has a checksum, where a secret asks for a signature."""
    settings = {"redis_url": redis_server.url, **ONLY_REDIS}
    async with serve(**settings, **before) as client:
        await ask(client)
    with redis_server.client() as redis:
        kept = {key: redis.get(key) for key in redis.scan_iter()}
    async with serve(**settings, **after) as client:
        assert await ask(client) == plain
        assert await failures(client, "garbage") == DISTINCT
        with redis_server.client() as redis:
            await until(lambda: all(redis.get(key) != value for key, value in kept.items()))
        assert await ask(client) == plain
        assert await client.metric("semblance_cache_hits_total", tier="redis") == DISTINCT


def test_news_from_before_the_last_change_change_nothing() -> None:
    """A request that was sent before Redis failed may be answered after that."""
    link = Breaker("works", "fails", "here")
    began = link.changes
    link.failed("gone", began)
    link.succeeded(began)
    assert (link.allows, link.up, link.reason) == (False, False, "gone")
    later = link.changes
    link.succeeded(later)
    link.failed("gone", later)
    assert (link.allows, link.up, link.reason) == (True, True, "")


def test_no_two_sentences_or_pairs_of_one_model_have_the_same_name() -> None:
    """Whatever their ids are together, and of each of its graphs."""
    keys = [(1, 2, 3), (1, 2), (3,), ((1, 2), (3,)), ((1,), (2, 3)), ((3,), (1, 2)), ((1, 2, 3), (1,))]
    spaces = [SPACE._replace(graph=graph) for graph in ("", "pair.onnx", "entailment.onnx")]
    names = {name_of(space, key) for space in spaces for key in keys}
    assert len(names) == len(spaces) * len(keys)


@asynccontextmanager
async def answering(reply: bytes, after: float = 0.0, cut: int = 0):
    """A server that answers whatever it is sent with the same bytes, the first `cut` of them at once; its port."""

    async def answer(reader, writer) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while await reader.read(65536):
                writer.write(reply[:cut])
                await asyncio.sleep(after)
                writer.write(reply[cut:])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize(
    "reply", [b":7\r\n", b"*0\r\n", b"+PONG\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR no\r\n", b"\x00" * 9]
)
async def test_what_is_no_redis_changes_nothing(serve: Serve, plain: bytes, reply: bytes) -> None:
    async with (
        answering(reply) as port,
        serve(cache="redis", redis_url=f"redis://127.0.0.1:{port}", cache_bytes=0) as client,
    ):
        for _ in range(3):
            assert await ask(client) == plain
        assert sum([await failures(client, kind) for kind in ("error", "garbage", "timeout")]) > 0


MANY = [b"*2147483647\r\n", b"*2\r\n*2147483647\r\n", b"*2\r\n%2147483647\r\n", b"*2\r\n$1\r\na\r\n*2147483647\r\n"]
MANY += [b"|999999999\r\n", b"*99999\r\n" * 100, b"*2\r\n$1\r\naXX*1000000000\r\n"]


@pytest.mark.parametrize("reply", MANY)
@pytest.mark.parametrize("cut", [0, 5], ids=["whole", "in parts"])
async def test_an_answer_that_announces_very_many_elements_is_not_made(reply: bytes, cut: int) -> None:
    """A list of 16 GB, which would be freed for many seconds; nobody would be answered meanwhile."""
    async with answering(reply, 0.05, cut) as port:
        settings = Settings(redis_url=f"redis://127.0.0.1:{port}")  # type: ignore[arg-type]
        client = RedisClient(settings, Telemetry(), "works", "fails")
        with pytest.raises(redis.ConnectionError, match="very many elements"):
            await asyncio.wait_for(client.redis.mget([b"a", b"b"]), 20)
        await client.aclose()
        await asyncio.sleep(0.1)


async def test_the_timeout_is_for_the_whole_exchange(serve: Serve, plain: bytes) -> None:
    """Keeping a vector takes several answers; each of them comes within the time-out, all of them do not."""
    async with (
        answering(b"+OK\r\n", after=0.08) as port,
        serve(cache="redis", redis_url=f"redis://127.0.0.1:{port}", redis_timeout_ms=100, cache_bytes=0) as client,
    ):
        assert await ask(client) == plain
        assert await failures(client, "timeout") == 1


# What needs one.


@pytest.mark.redis
async def test_embeddings_are_shared_between_processes(serve: Serve, models, redis_server, plain: bytes) -> None:
    settings = {"redis_url": redis_server.url, **ONLY_REDIS}
    async with serve(**settings) as client:
        assert await ask(client) == plain
        assert await client.metric("semblance_cache_misses_total", tier="redis") == DISTINCT
    with redis_server.client() as redis:
        keys = sorted(redis.keys())
        fingerprint = Manifest.load(models / "avg-paraphrase").fingerprint
        tokenizer = fakes.tokenizer()
        texts = {text for pair in BODY["pairs"] for text in pair.values()}
        space = VectorSpace(fingerprint, fakes.DIM)
        assert keys == sorted(name_of(space, tokenizer.encode(text, fakes.MAX_TOKENS).ids) for text in texts)
        assert {redis.strlen(key) for key in keys} == {1 + 4 * fakes.DIM + 16}
        assert all(0 < redis.ttl(key) <= 7 * 24 * 3600 for key in keys)
    async with serve(**settings) as client:
        assert await ask(client) == plain
        assert await client.metric("semblance_cache_hits_total", tier="redis") == DISTINCT
        assert await client.metric("semblance_cache_misses_total", tier="redis") == 0
        assert await client.metric("semblance_redis_up") == 1


@pytest.mark.redis
async def test_memory_keeps_what_redis_gave(serve: Serve, redis_server, plain: bytes) -> None:
    async with serve(cache="redis", redis_url=redis_server.url, redis_timeout_ms=60_000) as client:
        await ask(client)
    async with serve(cache="redis", redis_url=redis_server.url, redis_timeout_ms=60_000) as client:
        assert await ask(client) == plain
        assert (await client.post("/embed", json={"sentences": ["a man plays", "xylophone"]})).status_code == 200
        assert await client.metric("semblance_cache_hits_total", tier="redis") == DISTINCT
        assert await client.metric("semblance_cache_hits_total", tier="memory") == 2


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda value: value[:at] + bytes([value[at] ^ 1]) + value[at + 1 or len(value) :]


BROKEN: list[Callable[[bytes], bytes]] = [
    *map(flipped, (0, 1, 6, -1)),
    lambda value: value[:-1],
    lambda value: value[:1] + b"\xff" * (len(value) - 1),
    lambda value: b"",
    lambda value: 70_000 * b"x",
]


@pytest.mark.redis
@pytest.mark.parametrize("secret", [None, SECRET])
async def test_a_value_that_is_not_whole_is_a_miss_and_overwritten(
    serve: Serve, redis_server, plain, secret: str | None
) -> None:
    async with serve(redis_url=redis_server.url, redis_secret=secret, **ONLY_REDIS) as client:
        await ask(client)
        with redis_server.client() as redis:
            await until(lambda: redis.dbsize() == DISTINCT)
            kept = {key: redis.get(key) for key in redis.scan_iter()}
            for number, broken in enumerate(BROKEN, start=1):
                redis.mset({key: broken(value) for key, value in kept.items()})
                assert await ask(client) == plain, number
                assert await failures(client, "garbage") == number * DISTINCT
                (reason,) = (await client.get("/health/ready")).json()["reasons"]
                assert reason.startswith("redis holds values that are no vectors")
                assert await client.metric("semblance_cache_hits_total", tier="redis") == 0
                await until(lambda: {key: redis.get(key) for key in kept} == kept)
            for key in kept:  # of another type
                redis.delete(key)
                redis.hset(key, "a", "b")
            assert await ask(client) == plain
            await until(lambda: {redis.type(key) for key in kept} == {b"string"})
        assert await ask(client) == plain
        assert await client.metric("semblance_cache_hits_total", tier="redis") == DISTINCT


@pytest.mark.redis
@pytest.mark.parametrize("secret", [None, SECRET])
async def test_a_value_under_the_name_of_another_is_a_miss(
    serve: Serve, redis_server, plain: bytes, secret: str | None
) -> None:
    """Whoever can write to Redis has values that are sealed: those of other texts."""
    async with serve(redis_url=redis_server.url, redis_secret=secret, **ONLY_REDIS) as client:
        await ask(client)
        with redis_server.client() as redis:
            await until(lambda: redis.dbsize() == DISTINCT)
            names = sorted(redis.scan_iter())
            redis.mset(dict(zip(names, redis.mget(names[1:] + names[:1]), strict=True)))
        assert await ask(client) == plain
        assert await failures(client, "garbage") == DISTINCT


@pytest.mark.redis
async def test_a_hanging_redis_delays_one_request_by_the_timeout(serve: Serve, redis_server, plain, caplog) -> None:
    caplog.set_level(logging.INFO, "service.engine.breaker")
    async with serve(cache="redis", redis_url=redis_server.url, redis_timeout_ms=3000, cache_bytes=0) as client:
        assert await ask(client) == plain
        await until(lambda: not client.app.service.cache.remote._writes)
        redis_server.process.send_signal(signal.SIGSTOP)
        try:
            assert await ask(client) == plain
            for _ in range(20):
                assert await ask(client) == plain
            assert await failures(client, "timeout") == 1
            assert await client.metric("semblance_redis_up") == 0
        finally:
            redis_server.process.send_signal(signal.SIGCONT)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "redis does not answer; vectors are computed instead"
    ]


@pytest.mark.redis
async def test_a_full_redis_still_answers_what_it_has(
    serve: Serve, redis_server, plain: bytes, caplog, monkeypatch
) -> None:
    monkeypatch.setattr(breaker, "PROBE_SECONDS", 60)
    async with serve(redis_url=redis_server.url, **ONLY_REDIS) as client:
        await ask(client)
        with redis_server.client() as redis:
            await until(lambda: redis.dbsize() == DISTINCT)
            redis.config_set("maxmemory", 1)
            for word in fakes.WORDS[:5]:
                assert (await client.post("/embed", json={"sentences": [word]})).status_code == 200
                await until(lambda: not client.app.service.cache.remote._writes)
            redis.config_set("maxmemory", 0)
        assert await failures(client, "error") == 1
        assert await client.metric("semblance_redis_up") == 1
        assert await ask(client) == plain
        assert await client.metric("semblance_cache_hits_total", tier="redis") == DISTINCT
    refusals = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert refusals == ["redis refuses to keep vectors"]


@pytest.mark.redis
async def test_writes_beyond_those_under_way_are_dropped(redis_server, monkeypatch) -> None:
    monkeypatch.setattr(redis_cache, "MAX_WRITES", 2)
    telemetry = Telemetry()
    settings = Settings(redis_url=redis_server.url, redis_timeout_ms=int(1000 * NEEDED_SECONDS))
    cache = RedisCache(settings, telemetry)
    await cache.probe()
    for i in range(5):
        cache.put_many(SPACE, {(i,): np.zeros((1, 4), np.float32)})
    await cache.close()
    with redis_server.client() as redis:
        assert redis.dbsize() == 2
    assert telemetry.registry.get_sample_value("semblance_redis_failures_total", {"kind": "dropped"}) == 3
