import numpy as np
import pytest

from service.cache import REMOTE_MOST, REMOTE_PAYS_SECONDS, Score, ScoreCache, Space, Tiers, VectorCache
from service.telemetry import Telemetry

pytestmark = pytest.mark.anyio
ONE, OTHER = Space("1" * 64, 2), Space("2" * 64, 2)
MEMORY, BOTH, REDIS = Tiers(True, False), Tiers(True, True), Tiers(False, True)


def vector(value: float):
    return np.full((1, 2), value, np.float32)


class Remote:
    """A second tier that keeps what it is told in a dict."""

    def __init__(self) -> None:
        self.kept = {}
        self.asked = []

    async def get_many(self, space, keys):
        self.asked.append(list(keys))
        return {key: self.kept[space, key] for key in keys if (space, key) in self.kept}

    def put_many(self, space, vectors) -> None:
        self.kept |= {(space, key): each for key, each in vectors.items()}


async def test_the_least_recently_used_goes_first() -> None:
    cache = VectorCache(2, Telemetry())
    cache.keep(ONE, {(1,): vector(1), (2,): vector(2)}, MEMORY)
    cache.find(ONE, [(1,)])
    cache.keep(ONE, {(3,): vector(3)}, MEMORY)
    assert set(cache.find(ONE, [(1,), (2,), (3,)])) == {(1,), (3,)}
    assert len(cache) == 2


async def test_models_do_not_see_each_others_vectors() -> None:
    cache = VectorCache(9, Telemetry())
    cache.keep(ONE, {(1,): vector(1)}, MEMORY)
    assert cache.find(OTHER, [(1,)]) == {}
    assert cache.find(ONE._replace(graph="entailment.onnx"), [(1,)]) == {}


async def test_what_the_remote_tier_gave_is_in_memory_from_then_on() -> None:
    remote = Remote()
    cache = VectorCache(9, Telemetry(), remote)
    remote.kept[ONE, (2,)] = vector(2)
    assert set(await cache.fetch(ONE, [(2,), (3,)], BOTH)) == {(2,)}
    assert set(cache.find(ONE, [(2,), (3,)])) == {(2,)}
    cache.keep(ONE, {(1,): vector(1)}, BOTH)
    assert (ONE, (1,)) in remote.kept


async def test_a_model_uses_only_its_tiers() -> None:
    remote = Remote()
    cache = VectorCache(9, Telemetry(), remote)
    cache.keep(ONE, {(1,): vector(1)}, MEMORY)
    assert await cache.fetch(ONE, [(1,)], MEMORY) == {}
    assert not remote.kept
    assert not remote.asked
    cache.keep(ONE, {(2,): vector(2)}, REDIS)
    assert set(await cache.fetch(ONE, [(2,)], REDIS)) == {(2,)}
    assert set(cache.find(ONE, [(1,), (2,)])) == {(1,)}


@pytest.mark.parametrize(
    ("policy", "cheap", "dear"),
    [
        ("auto", MEMORY, BOTH),
        ("memory", MEMORY, MEMORY),
        ("redis", BOTH, BOTH),
        ("off", Tiers(False, False), Tiers(False, False)),
    ],
)
def test_auto_asks_redis_where_the_model_costs_more(policy, cheap: Tiers, dear: Tiers) -> None:
    cache = VectorCache(9, Telemetry(), Remote())
    assert cache.tiers(policy, REMOTE_PAYS_SECONDS * 0.9) == cheap
    assert cache.tiers(policy, REMOTE_PAYS_SECONDS) == dear
    assert VectorCache(0, Telemetry(), Remote()).tiers(policy, 1.0) == dear._replace(memory=False)
    assert VectorCache(9, Telemetry()).tiers(policy, 1.0) == dear._replace(redis=False)


def test_tiers_are_told_by_name() -> None:
    assert (Tiers(False, False).names, MEMORY.names, BOTH.names) == ([], ["memory"], ["memory", "redis"])


@pytest.mark.parametrize(("count", "remotely"), [(REMOTE_MOST, True), (REMOTE_MOST + 1, False)])
async def test_very_many_at_once_stay_in_memory(count: int, remotely: bool) -> None:
    remote = Remote()
    cache = VectorCache(9999, Telemetry(), remote)
    new = {(i,): vector(i) for i in range(count)}
    assert await cache.fetch(ONE, list(new), BOTH) == {}
    cache.keep(ONE, new, BOTH)
    assert (bool(remote.asked), bool(remote.kept)) == (remotely, remotely)
    assert cache.find(ONE, new).keys() == new.keys()


def test_scores_are_found_together_or_not_at_all() -> None:
    telemetry = Telemetry()
    cache = ScoreCache(2, telemetry)
    a, b, c = (((1,), (i,)) for i in range(3))
    cache.keep([a, b], [Score(0.1, None, 0.2), Score(0.3, 4.0, 0.5)])
    assert cache.find([b, a, b]) == [Score(0.3, 4.0, 0.5), Score(0.1, None, 0.2), Score(0.3, 4.0, 0.5)]
    assert cache.find([a, c]) is None
    cache.find([a])
    cache.keep([c], [Score(0.0, None, 0.0)])  # and the one unused for longest goes
    assert cache.find([b]) is None
    assert cache.find([a, c]) is not None
    hits, misses = (
        telemetry.registry.get_sample_value(f"semblance_cache_{what}_total", {"tier": "scores"})
        for what in ("hits", "misses")
    )
    assert (hits, misses) == (6, 3)


def test_a_cache_of_no_scores_keeps_none() -> None:
    cache = ScoreCache(0, Telemetry())
    cache.keep([((1,), (2,))], [Score(0.1, None, 0.2)])
    assert cache.find([((1,), (2,))]) is None
