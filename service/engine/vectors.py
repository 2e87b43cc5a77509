"""The vectors of one graph: from memory, another request's computation, the remote cache, or the graph, in this order.

Where computing a vector costs less than finding it, the graph computes all of them. Keys that several requests need at
the same time are computed once. A request does not join a computation of many more keys than it needs: waiting for it
would take longer than computing its own keys again. The computation is a task of its own. It goes on while any request
waits for it, even if the first one was cancelled.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np

from service.engine.admission import RequestContext
from service.engine.batcher import Batcher
from service.engine.cache import LOOKUP_SECONDS, CacheTiers, K, Vector, VectorCache, VectorSpace
from service.engine.graph import Rows, TextGraph
from service.engine.queue import Queue
from service.errors import Overloaded, TooSlow
from service.observe.metrics import CACHE, QUEUE
from service.settings import CachePolicy

_MAX_KEYS_RATIO = 8  # a request joins no computation of more than so many times its own keys

R = TypeVar("R")


class _Flight(Generic[K, R]):
    """One running computation, and how many requests wait for it."""

    def __init__(self, keys: Sequence[K], search: Coroutine[Any, Any, Mapping[K, R]]) -> None:
        self.keys = keys
        self.waiting = 0
        self.task = asyncio.get_running_loop().create_task(search)


class SingleFlight(Generic[K, R]):
    """Running computations, by key."""

    def __init__(self) -> None:
        self._by_key: dict[K, _Flight[K, R]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    async def get(
        self,
        context: RequestContext,
        keys: Sequence[K],
        search: Callable[[Sequence[K]], Coroutine[Any, Any, Mapping[K, R]]],
    ) -> dict[K, R]:
        """A result for each key, from computations that are running or from a new one.

        Args:
            context: of the request.
            keys: at least one, no two alike.
            search: computes a result for each key it is given.

        Raises:
            Exception: whatever a computation raises, in all requests that wait for it. Refusals are of the request that
                began it (its time, its turn): the others compute what they need themselves.
        """
        flights: dict[_Flight[K, R], list[K]] = {}
        alone: list[K] = []
        for key in keys:
            flight = self._by_key.get(key)
            # One that is done is forgotten in this turn of the event loop; what it found is kept, a refusal not shared.
            if flight is None or flight.task.done() or len(flight.keys) > _MAX_KEYS_RATIO * len(keys):
                alone.append(key)
            else:
                flights.setdefault(flight, []).append(key)
        others = list(flights)
        own = self._begin(alone, search) if alone else None
        if own is not None:
            flights[own] = alone
        for flight in flights:
            flight.waiting += 1
        found: dict[K, R] = {}
        try:
            if own is not None:
                found.update(await asyncio.shield(own.task))
            began = perf_counter()
            refused: list[K] = []
            for flight in others:
                try:
                    arrived = await asyncio.shield(flight.task)
                except (Overloaded, TooSlow):
                    refused += flights[flight]
                else:
                    found.update((key, arrived[key]) for key in flights[flight])
            if others:
                context.spent(QUEUE, began, perf_counter())
            if refused:
                found |= await self.get(context, refused, search)
        finally:
            for flight in flights:
                flight.waiting -= 1
                if not flight.waiting:
                    flight.task.cancel()  # no effect if it is done
                    self._forget(flight)  # at once, so that no request joins a cancelled flight
        return found

    def _begin(
        self, keys: Sequence[K], search: Callable[[Sequence[K]], Coroutine[Any, Any, Mapping[K, R]]]
    ) -> _Flight[K, R]:
        flight = _Flight(keys, search(keys))
        self._by_key.update(dict.fromkeys(keys, flight))

        def finished(task: asyncio.Task[Mapping[K, R]]) -> None:
            self._forget(flight)
            if not task.cancelled():
                task.exception()  # retrieved, or asyncio would log it as never retrieved

        flight.task.add_done_callback(finished)
        return flight

    def _forget(self, flight: _Flight[K, R]) -> None:
        for key in flight.keys:
            if self._by_key.get(key) is flight:
                del self._by_key[key]


class Vectors(Generic[K]):
    """A graph's outputs for sentences or pairs, each computed once."""

    def __init__(self, graph: TextGraph[K], queue: Queue, cache: VectorCache, space: VectorSpace) -> None:
        self.batcher = Batcher(queue, graph)
        self.tiers = CacheTiers()
        self.cheaper_than_lookup = False  # whether computing a vector costs less than finding it in a cache
        self._cache = cache
        self._space = space
        self._flights: SingleFlight[K, Vector] = SingleFlight()

    def measure(self, keys: Sequence[K], policy: CachePolicy, max_tokens: int) -> None:
        """Measure the graph's cost, and choose the cache tiers by it; `max_tokens` is of a sentence."""
        self.batcher.measure(keys, max_tokens)
        first_key_seconds, next_key_seconds = (
            self.batcher.expected_seconds(keys[:1]),
            self.batcher.seconds_of_one_more(keys),
        )
        self.cheaper_than_lookup = next_key_seconds < LOOKUP_SECONDS
        self.tiers = self._cache.choose_tiers(policy, first_key_seconds, next_key_seconds)

    async def get(self, context: RequestContext, keys: Sequence[K], *, cached: bool = True) -> Rows:
        """A row for each key, in their order.

        Args:
            context: of the request.
            keys: at least one.
            cached: whether to read and fill the caches; false for texts that no client sends.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        if self.cheaper_than_lookup and not (cached and any(self.tiers)):
            return await self.batcher.compute(context, keys)
        wanted = dict.fromkeys(keys)
        if not cached:
            return _spread(await self.batcher.compute(context, list(wanted)), wanted, keys)
        found: dict[K, Vector] = {}
        if self.tiers.memory:
            began = perf_counter()
            found = self._cache.find(self._space, wanted)
            context.spent(CACHE, began, perf_counter())
        if missing := [key for key in wanted if key not in found]:
            # No await between look-up and result: no other request can compute the same keys meanwhile.
            if not self.tiers.remote and (new := self.batcher.rows_if_quick(context, missing)) is not None:
                found |= self._keep(missing, new)
            else:
                found |= await self._flights.get(context, missing, partial(self._search, context))
        return np.concatenate([found[key] for key in keys])

    def at_once(self, keys: Sequence[K]) -> Rows:
        """A row for each key, computed in this thread and without caches.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
        """
        wanted = dict.fromkeys(keys)
        return _spread(self.batcher.run_blocking(list(wanted)), wanted, keys)

    async def _search(self, context: RequestContext, keys: Sequence[K]) -> Mapping[K, Vector]:
        """Vectors from the remote cache or else from the graph."""
        found: Mapping[K, Vector] = {}
        if self.tiers.remote:
            began = perf_counter()
            found = await self._cache.fetch(self._space, keys, self.tiers)
            context.spent(CACHE, began, perf_counter())
        if missing := [key for key in keys if key not in found]:
            return {**found, **self._keep(missing, await self.batcher.compute(context, missing))}
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
