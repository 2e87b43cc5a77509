"""Single flight: keys that several requests need at the same time are computed once.

A request does not join a computation of many more keys than it needs: waiting for it would take longer than computing
its own keys again. The computation is a task of its own. It goes on while any request waits for it, even if the first
one was cancelled.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

from service.observe.timings import QUEUE, TIMINGS

_MOST_TIMES = 8  # as many keys as the request has, of a computation that it joins

K = TypeVar("K")
R = TypeVar("R")


class _Flight(Generic[K, R]):
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
        self, keys: Sequence[K], search: Callable[[Sequence[K]], Coroutine[Any, Any, Mapping[K, R]]]
    ) -> dict[K, R]:
        """A result for each key, from computations that are running or from a new one.

        Args:
            keys: at least one, no two alike.
            search: computes a result for each key it is given.

        Raises:
            Exception: whatever a computation raises, in all requests that wait for it.
        """
        flights: dict[_Flight[K, R], list[K]] = {}
        alone: list[K] = []
        for key in keys:
            flight = self._by_key.get(key)
            if flight is None or len(flight.keys) > _MOST_TIMES * len(keys):
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
            for flight in others:
                arrived = await asyncio.shield(flight.task)
                found.update((key, arrived[key]) for key in flights[flight])
            if others:
                TIMINGS.get().spent(QUEUE, began, perf_counter())
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

        def landed(task: asyncio.Task[Mapping[K, R]]) -> None:
            self._forget(flight)
            if not task.cancelled():
                task.exception()  # retrieved, or asyncio would log it as never retrieved

        flight.task.add_done_callback(landed)
        return flight

    def _forget(self, flight: _Flight[K, R]) -> None:
        for key in flight.keys:
            if self._by_key.get(key) is flight:
                del self._by_key[key]
