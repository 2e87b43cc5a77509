"""Redis whose connections are reset while requests are under way."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchmarks.faults.load import difference
from service.engine import breaker
from tests.harness.resets import Resets, resetting
from tests.harness.service import Client, RedisServer, Serve

pytestmark = [pytest.mark.anyio, pytest.mark.redis]
ONLY_REDIS = {"cache": "redis", "cache_bytes": 0}
TEXTS = [f"{a} {b} {c}" for a in ("a man", "the dog", "a cat") for b in ("plays", "runs") for c in ("in", "on")]
ASKS = [
    *(("/similarity", {"pairs": [{"a": text, "b": TEXTS[0]}], "model": "avg-paraphrase"}) for text in TEXTS),
    *(("/similarity", {"pairs": [{"a": text, "b": TEXTS[1]}], "model": "pair-sick"}) for text in TEXTS),
    ("/entailment", {"pairs": [{"premise": text, "hypothesis": TEXTS[2]} for text in TEXTS]}),
    ("/embed", {"sentences": TEXTS}),
    ("/rank", {"query": TEXTS[3], "candidates": TEXTS, "model": "avg-sick"}),
]


async def answers(client: Client) -> list[object]:
    """Of all requests, asked at the same time."""
    responses = await asyncio.gather(*(client.post(path, json=body) for path, body in ASKS))
    assert [response.status_code for response in responses] == [200] * len(ASKS)
    return [json.loads(response.content) for response in responses]


async def failures(client: Client) -> dict[str, float]:
    kinds = ("error", "timeout", "garbage")
    return {kind: await client.metric("semblance_redis_failures_total", kind=kind) for kind in kinds}


@pytest.fixture(scope="module")
async def plain(serve: Serve) -> list[object]:
    """The answers without any cache."""
    async with serve(cache="off") as client:
        return await answers(client)


@asynccontextmanager
async def behind_a_proxy(redis_server: RedisServer) -> AsyncIterator[tuple[str, Resets]]:
    resets = Resets()
    async with resetting(redis_server.port, resets, random.Random(1)) as port:
        yield f"redis://127.0.0.1:{port}/0", resets


@pytest.mark.parametrize("most", [1, 30, 300, 3000])
async def test_an_answer_cut_short_by_a_reset_is_a_miss(
    serve: Serve, redis_server, plain, monkeypatch, most: int
) -> None:
    monkeypatch.setattr(breaker, "PROBE_SECONDS", 0.002)
    async with (
        behind_a_proxy(redis_server) as (url, resets),
        serve(redis_url=url, redis_timeout_ms=60_000, **ONLY_REDIS) as client,
    ):
        assert difference(await answers(client), plain) is None
        resets.after = most
        for _ in range(5):
            assert difference(await answers(client), plain) is None
        found = await failures(client)
        assert found["error"] > 0
        assert found["timeout"] == 0
        resets.after = 0
        assert difference(await answers(client), plain) is None
