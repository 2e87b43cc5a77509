"""Single flight: what several requests look for at the same time is looked for once.

The search is a task of its own, so that it outlives the request that began it for as long as anybody waits for it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

from service.timings import QUEUE, TIMINGS

K = TypeVar("K")
R = TypeVar("R")


class _Flight(Generic[K, R]):
    def __init__(self, keys: Sequence[K], search: Coroutine[Any, Any, Mapping[K, R]]) -> None:
        self.keys = keys
        self.waiting = 0
        self.task = asyncio.get_running_loop().create_task(search)


class Flights(Generic[K, R]):
    """The searches under way."""

    def __init__(self) -> None:
        self._by_key: dict[K, _Flight[K, R]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    async def get(
        self, keys: Sequence[K], search: Callable[[Sequence[K]], Coroutine[Any, Any, Mapping[K, R]]]
    ) -> dict[K, R]:
        """What a search finds for the keys, those that another one looks for already from there.

        Args:
            keys: at least one, no two alike.
            search: finds something for each key it is given, or raises.

        Raises:
            Exception: whatever a search raises, to all who wait for it.
        """
        flights: dict[_Flight[K, R], list[K]] = {}
        alone: list[K] = []
        for key in keys:
            if (flight := self._by_key.get(key)) is None:
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
                    flight.task.cancel()  # where it is done, nothing happens
                    self._forget(flight)  # at once: nobody must join what is given up
        return found

    def _begin(
        self, keys: Sequence[K], search: Callable[[Sequence[K]], Coroutine[Any, Any, Mapping[K, R]]]
    ) -> _Flight[K, R]:
        flight = _Flight(keys, search(keys))
        self._by_key.update(dict.fromkeys(keys, flight))

        def landed(task: asyncio.Task[Mapping[K, R]]) -> None:
            self._forget(flight)
            if not task.cancelled():
                task.exception()  # if nobody waits any more, nobody wants to hear how it failed

        flight.task.add_done_callback(landed)
        return flight

    def _forget(self, flight: _Flight[K, R]) -> None:
        for key in flight.keys:
            if self._by_key.get(key) is flight:
                del self._by_key[key]
