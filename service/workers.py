"""Where work runs: small work at once in the event loop, large work in a bounded pool of threads.

A hop to a thread costs about 0.1 ms, which is more than most requests take altogether; but work of several
milliseconds in the event loop makes every other caller wait. `INLINE_SECONDS` is the line between them, held
against an *expected* time that each scorer measures when it is opened.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import TypeVar

from service.errors import Overloaded
from service.timings import INFERENCE, QUEUE, TIMINGS

INLINE_SECONDS = 0.001

T = TypeVar("T")


class Workers:
    """Runs pieces of work, never more than `threads` outside the event loop, and never a long queue of them."""

    def __init__(self, threads: int, max_waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="scorer")
        self._limit = threads + max_waiting
        self._max_waiting = max_waiting
        self.busy = 0  # requests in the pool or waiting for it

    async def run(self, expected_seconds: float, work: Callable[[], T], phase: int = INFERENCE) -> T:
        """Do one piece of work, here or in a thread; its time is noted as that of a phase.

        Raises:
            Overloaded: too many requests are waiting already.
        """
        if expected_seconds <= INLINE_SECONDS:
            began = perf_counter()
            result = work()
            TIMINGS.get().spent(phase, began, perf_counter())
            return result
        return (await self.run_all(expected_seconds, [work], phase))[0]

    async def run_all(
        self, expected_seconds: float, pieces: Sequence[Callable[[], T]], phase: int = INFERENCE
    ) -> list[T]:
        """Do the pieces of one request, one after another, so that other requests' pieces come in between.

        A request that is given up is rid of the pieces not begun.

        Raises:
            Overloaded: too many requests are waiting already.
        """
        timings = TIMINGS.get()
        if expected_seconds <= INLINE_SECONDS:
            began = perf_counter()
            results = [piece() for piece in pieces]
            timings.spent(phase, began, perf_counter())
            return results
        if self.busy >= self._limit:
            raise Overloaded(f"{self._max_waiting} large requests are waiting already", limit=self._max_waiting)
        loop = asyncio.get_running_loop()
        self.busy += 1
        results = []
        try:
            for piece in pieces:
                handed = perf_counter()
                result, began, ended = await loop.run_in_executor(self._pool, partial(_timed, piece))
                timings.spent(QUEUE, handed, began)
                timings.spent(phase, began, ended)
                results.append(result)
        finally:
            self.busy -= 1
        return results

    def close(self) -> None:
        """Wait for the pieces that run, forget those that wait."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _timed(piece: Callable[[], T]) -> tuple[T, float, float]:
    """What it gives, when it began, when it ended."""
    began = perf_counter()
    result = piece()
    return result, began, perf_counter()
