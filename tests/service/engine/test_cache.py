import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.faults.load import difference
from service.engine.admission import RequestContext
from service.engine.cache import CacheTiers, SingleFlight, VectorCache
from service.engine.measuring import LOOKUP_SECONDS, REMOTE_PAYS_SECONDS, choose_tiers
from service.errors import Overloaded, TooSlow
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


async def test_who_asks_right_after_the_only_one_who_waited_has_left_is_answered() -> None:
    """In the same turn of the event loop: the computation that nobody waits for is not yet done away with."""
    flights: SingleFlight[Any] = SingleFlight()

    async def hangs(keys: Sequence[str]) -> dict[str, int]:
        return await asyncio.Future()

    async def answers(keys: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(keys, 1)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await flights.get(RequestContext(), ["a"], hangs)
    assert await flights.get(RequestContext(), ["a"], answers) == {"a": 1}


@pytest.mark.parametrize("refusal", [TooSlow(9.0, 1.0), Overloaded("others wait", seconds=1.0)])
async def test_who_joined_the_computation_of_a_request_that_is_refused_computes_it_alone(refusal: Exception) -> None:
    flights: SingleFlight[Any] = SingleFlight()
    begun = 0

    async def refused(keys: Sequence[str]) -> dict[str, int]:
        await asyncio.sleep(0.01)
        raise refusal

    async def answers(keys: Sequence[str]) -> dict[str, int]:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0.01)
        return dict.fromkeys(keys, 1)

    asked = [
        flights.get(RequestContext(), ["a", "b"], refused),
        *(flights.get(RequestContext(), ["b", "c"], answers) for _ in range(3)),
    ]
    first, *others = await asyncio.gather(*asked, return_exceptions=True)
    assert first is refusal
    assert others == [{"b": 1, "c": 1}] * 3
    assert begun == 2  # `c` by the first of them, and `b` once it was refused
    assert not flights._by_key


async def test_who_asks_when_a_computation_has_just_been_refused_computes_it_alone() -> None:
    """In the same turn of the event loop, before it is forgotten."""
    flights: SingleFlight[Any] = SingleFlight()
    later: list[asyncio.Task[dict[str, int]]] = []

    async def answers(keys: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(keys, 1)

    async def refused(keys: Sequence[str]) -> dict[str, int]:
        later.append(asyncio.create_task(flights.get(RequestContext(), ["a"], answers)))
        raise TooSlow(9.0, 1.0)

    with pytest.raises(TooSlow):
        await flights.get(RequestContext(), ["a"], refused)
    assert await later[0] == {"a": 1}
