import numpy as np
import pytest

from service.cache import REMOTE_MOST, EmbeddingCache, Space
from service.telemetry import Telemetry

pytestmark = pytest.mark.anyio
ONE, OTHER = Space("1" * 64, 2), Space("2" * 64, 2)


def embedding(value: float):
    return np.full((1, 2), value, np.float32)


class Remote:
    """A second tier that keeps what it is told in a dict."""

    def __init__(self) -> None:
        self.kept = {}
        self.asked = []

    async def get_many(self, space, ids):
        self.asked.append(list(ids))
        return {i: self.kept[space, i] for i in ids if (space, i) in self.kept}

    def put_many(self, space, embeddings) -> None:
        self.kept |= {(space, i): e for i, e in embeddings.items()}


async def test_the_least_recently_used_goes_first() -> None:
    cache = EmbeddingCache(2, Telemetry())
    cache.put_many(ONE, {(1,): embedding(1), (2,): embedding(2)})
    await cache.get_many(ONE, [(1,)])
    cache.put_many(ONE, {(3,): embedding(3)})
    assert set(await cache.get_many(ONE, [(1,), (2,), (3,)])) == {(1,), (3,)}
    assert len(cache) == 2


async def test_models_do_not_see_each_others_embeddings() -> None:
    cache = EmbeddingCache(9, Telemetry())
    cache.put_many(ONE, {(1,): embedding(1)})
    assert await cache.get_many(OTHER, [(1,)]) == {}


async def test_a_size_of_zero_keeps_nothing() -> None:
    cache = EmbeddingCache(0, Telemetry())
    cache.put_many(ONE, {(1,): embedding(1)})
    assert await cache.get_many(ONE, [(1,)]) == {}
    assert len(cache) == 0


async def test_the_remote_tier_is_asked_only_for_what_memory_lacks() -> None:
    remote = Remote()
    cache = EmbeddingCache(9, Telemetry(), remote)
    cache.put_many(ONE, {(1,): embedding(1)})
    assert (ONE, (1,)) in remote.kept
    remote.kept[ONE, (2,)] = embedding(2)
    found = await cache.get_many(ONE, [(1,), (2,), (3,)])
    assert set(found) == {(1,), (2,)}
    assert remote.asked == [[(2,), (3,)]]
    await cache.get_many(ONE, [(1,), (2,)])
    assert remote.asked == [[(2,), (3,)]]  # memory has kept what the remote tier gave


@pytest.mark.parametrize(("count", "remotely"), [(REMOTE_MOST, True), (REMOTE_MOST + 1, False)])
async def test_very_many_at_once_stay_in_memory(count: int, remotely: bool) -> None:
    remote = Remote()
    cache = EmbeddingCache(9999, Telemetry(), remote)
    new = {(i,): embedding(i) for i in range(count)}
    assert await cache.get_many(ONE, new) == {}
    cache.put_many(ONE, new)
    assert (bool(remote.asked), bool(remote.kept)) == (remotely, remotely)
    assert (await cache.get_many(ONE, new)).keys() == new.keys()
