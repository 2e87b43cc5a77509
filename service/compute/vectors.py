"""The vectors of one graph: from memory, another request's computation, Redis, or the graph, in this order.

Where computing a vector costs less than finding it, the graph computes all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Generic

import numpy as np

from service.compute.batcher import Batcher
from service.compute.cache import FINDING_SECONDS, CacheTiers, K, Vector, VectorCache, VectorSpace
from service.compute.graph import Rows, TextGraph
from service.compute.pool import Pool
from service.compute.single_flight import SingleFlight
from service.observe.timings import CACHE, TIMINGS
from service.settings import CachePolicy


class Vectors(Generic[K]):
    """A graph's outputs for sentences or pairs, each computed once."""

    def __init__(self, graph: TextGraph[K], pool: Pool, cache: VectorCache, space: VectorSpace) -> None:
        self.batcher = Batcher(pool, graph)
        self.tiers = CacheTiers(memory=False, redis=False)
        self.by_position = False  # whether computing a vector costs less than looking for it
        self._cache = cache
        self._space = space
        self._flights: SingleFlight[K, Vector] = SingleFlight()

    def measure(self, keys: Sequence[K], policy: CachePolicy, max_tokens: int) -> None:
        """Measure the graph's cost, and choose the cache tiers by it; `max_tokens` is of a sentence."""
        self.batcher.measure(keys, max_tokens)
        alone, more = self.batcher.expected_seconds(keys[:1]), self.batcher.seconds_of_one_more(keys)
        self.by_position = more < FINDING_SECONDS
        self.tiers = self._cache.tiers(policy, alone, more)

    async def get(self, keys: Sequence[K], *, cached: bool = True) -> Rows:
        """A row for each key, in their order.

        Args:
            keys: at least one.
            cached: whether to read and fill the caches; false for texts that no client sends.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        if self.by_position and not (cached and any(self.tiers)):
            return await self.batcher.get(keys)
        wanted = dict.fromkeys(keys)
        if not cached:
            return _spread(await self.batcher.get(list(wanted)), wanted, keys)
        found: dict[K, Vector] = {}
        if self.tiers.memory:
            began = perf_counter()
            found = self._cache.find(self._space, wanted)
            TIMINGS.get().spent(CACHE, began, perf_counter())
        if missing := [key for key in wanted if key not in found]:
            # No await between look-up and result: no other request can compute the same keys meanwhile.
            if not self.tiers.redis and (new := self.batcher.if_quick(missing)) is not None:
                found |= self._keep(missing, new)
            else:
                found |= await self._flights.get(missing, self._search)
        return np.concatenate([found[key] for key in keys])

    def at_once(self, keys: Sequence[K]) -> Rows:
        """A row for each key, computed in this thread and without caches.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
        """
        wanted = dict.fromkeys(keys)
        return _spread(self.batcher.in_this_thread(list(wanted)), wanted, keys)

    async def _search(self, keys: Sequence[K]) -> Mapping[K, Vector]:
        """Vectors from Redis or else from the graph."""
        found: Mapping[K, Vector] = {}
        if self.tiers.redis:
            began = perf_counter()
            found = await self._cache.fetch(self._space, keys, self.tiers)
            TIMINGS.get().spent(CACHE, began, perf_counter())
        if missing := [key for key in keys if key not in found]:
            return {**found, **self._keep(missing, await self.batcher.get(missing))}
        return found

    def _keep(self, keys: Sequence[K], rows: Rows) -> dict[K, Vector]:
        """The new vectors, which are kept; each owns its memory, so that none keeps its whole batch in memory."""
        vectors = {key: rows[i : i + 1].copy() for i, key in enumerate(keys)}
        self._cache.keep(self._space, vectors, self.tiers)
        return vectors


def _spread(rows: Rows, distinct: Iterable[K], keys: Sequence[K]) -> Rows:
    """The rows of distinct keys, once for each of `keys`."""
    place = {key: i for i, key in enumerate(distinct)}
    return rows[[place[key] for key in keys]]
