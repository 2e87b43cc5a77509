"""The vectors of one graph, from wherever they are had soonest: memory, Redis, another request's search, the graph."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Generic, NamedTuple

from service.batching import Batcher
from service.cache import K, Policy, Space, Tiers, Vector, VectorCache
from service.flights import Flights
from service.timings import CACHE, TIMINGS


class Found(NamedTuple, Generic[K]):
    """A vector for each key, and the keys for which the graph had to run."""

    vectors: Mapping[K, Vector]
    computed: Collection[K]


class Vectors(Generic[K]):
    """What one graph says of sentences, or of pairs, each thing once."""

    def __init__(self, batcher: Batcher[K, Vector], cache: VectorCache, space: Space) -> None:
        """Join the graph's batcher with the cache.

        Args:
            batcher: computes what no cache has.
            cache: of all models.
            space: what the vectors belong to.
        """
        self.batcher = batcher
        self.tiers = Tiers(memory=False, redis=False)
        self._cache = cache
        self._space = space
        self._flights: Flights[K, tuple[Vector, bool]] = Flights()

    def measure(self, keys: Sequence[K], policy: Policy) -> None:
        """Learn what the graph costs here, and choose the tiers by it."""
        self.batcher.measure(keys)
        self.tiers = self._cache.tiers(policy, self.batcher.expected_seconds(keys[:1]))

    async def get(self, keys: Iterable[K], *, cached: bool = True) -> Found[K]:
        """A vector for each key.

        Args:
            keys: at least one.
            cached: whether to ask a cache, and keep in it what is new; not for what nobody will send.

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
        # Nothing can come in between, so that nobody need wait for anybody.
        if not self.tiers.redis and (new := self.batcher.now(missing)) is not None:
            self._cache.keep(self._space, new, self.tiers)
            return Found(found | new, new.keys())
        arrived = await self._flights.get(missing, self._search)
        computed = {key for key, (_, was_computed) in arrived.items() if was_computed}
        found.update((key, vector) for key, (vector, _) in arrived.items())
        return Found(found, computed)

    async def _search(self, keys: Sequence[K]) -> dict[K, tuple[Vector, bool]]:
        """Ask the remote tier, then the graph: vectors, and whether each was computed."""
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
