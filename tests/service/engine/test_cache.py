from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.faults.load import difference
from service.engine.cache import CacheTiers, VectorCache
from service.engine.measuring import LOOKUP_SECONDS, REMOTE_PAYS_SECONDS, choose_tiers
from service.observe.telemetry import Telemetry
from tests.harness.service import Serve

pytestmark = pytest.mark.anyio
MUCH = 10_000_000
REMOTE: Any = SimpleNamespace(name="redis")  # nobody asks it here
MEMORY, BOTH = CacheTiers(True), CacheTiers(True, "redis")


@pytest.fixture
def finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """What finding a vector costs, as the service has it."""
    monkeypatch.setattr("service.engine.measuring.LOOKUP_SECONDS", LOOKUP_SECONDS)


@pytest.mark.usefixtures("finding")
@pytest.mark.parametrize(
    ("policy", "cheap", "dear"),
    [("auto", MEMORY, BOTH), ("memory", MEMORY, MEMORY), ("redis", BOTH, BOTH), ("off", CacheTiers(), CacheTiers())],
)
def test_auto_asks_redis_where_the_model_costs_more(policy, cheap: CacheTiers, dear: CacheTiers) -> None:
    cache = VectorCache(MUCH, Telemetry(), REMOTE)
    assert choose_tiers(cache, policy, REMOTE_PAYS_SECONDS * 0.9, LOOKUP_SECONDS) == cheap
    assert choose_tiers(cache, policy, REMOTE_PAYS_SECONDS, LOOKUP_SECONDS) == dear
    assert choose_tiers(VectorCache(0, Telemetry(), REMOTE), policy, 1.0, 1.0) == dear._replace(memory=False)
    assert choose_tiers(VectorCache(MUCH, Telemetry()), policy, 1.0, 1.0) == dear._replace(remote="")


async def test_of_a_request_only_the_new_pairs_are_misses_and_scored(serve: Serve) -> None:
    pairs = [{"a": "a man", "b": word} for word in ("plays", "runs", "a dog", "plays")]
    for model in ("avg-paraphrase", "avg-sick", "pair-sick"):
        async with serve(cache_bytes=0) as client:
            plain = (await client.post("/similarity", json={"pairs": pairs, "model": model})).json()
        async with serve(cache="memory") as client:
            await client.post("/similarity", json={"pairs": pairs[:2], "model": model})
            body = {"pairs": pairs, "model": model}
            mixed = (await client.post("/similarity", json=body)).json()["results"]
            assert difference(mixed, plain["results"]) is None
            assert await client.metric("semblance_cache_hits_total", tier="scores") == 3
            assert await client.metric("semblance_cache_misses_total", tier="scores") == 3
            again = await client.post("/similarity", json={"pairs": pairs, "model": model})
            assert difference(again.json(), plain) is None
            assert await client.metric("semblance_cache_hits_total", tier="scores") == 7
