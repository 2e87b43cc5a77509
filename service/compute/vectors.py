"""The vectors of one graph: from memory, another request's computation, Redis, or the graph, in this order."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Generic, NamedTuple

from service.compute.batcher import Batcher
from service.compute.cache import K, Space, Tiers, Vector, VectorCache
from service.compute.flights import Flights
from service.observe.timings import CACHE, TIMINGS
from service.settings import CachePolicy


class Found(NamedTuple, Generic[K]):
    """A vector for each key, and the keys for which the graph ran."""

    vectors: Mapping[K, Vector]
    computed: Collection[K]


class Vectors(Generic[K]):
    """A graph's outputs for sentences or pairs, each computed once."""

    def __init__(self, batcher: Batcher[K, Vector], cache: VectorCache, space: Space) -> None:
        self.batcher = batcher
        self.tiers = Tiers(memory=False, redis=False)
        self._cache = cache
        self._space = space
        self._flights: Flights[K, tuple[Vector, bool]] = Flights()

    def measure(self, keys: Sequence[K], policy: CachePolicy) -> None:
        """Measure the graph's cost, and choose the cache tiers by it."""
        self.batcher.measure(keys)
        self.tiers = self._cache.tiers(policy, self.batcher.expected_seconds(keys[:1]))

    async def get(self, keys: Iterable[K], *, cached: bool = True) -> Found[K]:
        """A vector for each key.

        Args:
            keys: at least one.
            cached: whether to read and fill the caches; false for texts that no client sends.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        wanted = dict.fromkeys(keys)
        found: dict[K, Vector] = {}
        if not cached:
            return Found(await self.batcher.get(list(wanted)), wanted)
        if self.tiers.memory:
            began = perf_counter()
            found = self._cache.find(self._space, wanted)
            TIMINGS.get().spent(CACHE, began, perf_counter())
            if len(found) == len(wanted):
                return Found(found, ())
        missing = [key for key in wanted if key not in found]
        # No await between look-up and result: no other request can compute the same keys meanwhile.
        if not self.tiers.redis and (new := self.batcher.now(missing)) is not None:
            self._cache.keep(self._space, new, self.tiers)
            return Found(found | new, new.keys())
        arrived = await self._flights.get(missing, self._search)
        computed = {key for key, (_, was_computed) in arrived.items() if was_computed}
        found.update((key, vector) for key, (vector, _) in arrived.items())
        return Found(found, computed)

    async def _search(self, keys: Sequence[K]) -> dict[K, tuple[Vector, bool]]:
        """Vectors from Redis or else from the graph, and whether each was computed."""
        distant: Mapping[K, Vector] = {}
        if self.tiers.redis:
            began = perf_counter()
            distant = await self._cache.fetch(self._space, keys, self.tiers)
            TIMINGS.get().spent(CACHE, began, perf_counter())
        result = {key: (vector, False) for key, vector in distant.items()}
        if missing := [key for key in keys if key not in distant]:
            new = await self.batcher.get(missing)
            self._cache.keep(self._space, new, self.tiers)
            result.update((key, (vector, True)) for key, vector in new.items())
        return result
