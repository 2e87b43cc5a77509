"""Where work runs: small work at once in the event loop, large work in a bounded pool of threads.

A hop to a thread costs about 0.1 ms, which is more than most requests take altogether; but work of several
milliseconds in the event loop makes every other caller wait. `INLINE_SECONDS` is the line between them, held
against an *expected* time that each scorer measures when it is opened.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from math import inf
from time import perf_counter
from typing import TypeVar

from service.errors import Overloaded, TookTooLong

INLINE_SECONDS = 0.001

# When the request at hand must be answered, by `perf_counter`. Only work that waits looks at it: a timer for every
# request would cost more than most of them.
DEADLINE: ContextVar[float] = ContextVar("deadline", default=inf)

T = TypeVar("T")


def seconds_left() -> float | None:
    """Until the deadline of the request at hand; None without one."""
    deadline = DEADLINE.get()
    return None if deadline == inf else deadline - perf_counter()


class Workers:
    """Runs pieces of work, never more than `threads` outside the event loop, and never a long queue of them."""

    def __init__(self, threads: int, max_waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="scorer")
        self._limit = threads + max_waiting
        self._max_waiting = max_waiting
        self.busy = 0  # requests in the pool or waiting for it

    async def run(self, expected_seconds: float, work: Callable[[], T]) -> T:
        """Do one piece of work, here or in a thread.

        Raises:
            Overloaded: too many pieces are waiting already.
            TookTooLong: the request's deadline passed; a piece under way is finished, its answer dropped.
        """
        if expected_seconds <= INLINE_SECONDS:
            return work()
        if self.busy >= self._limit:
            raise Overloaded(f"{self._max_waiting} large requests are waiting already", limit=self._max_waiting)
        self.busy += 1
        try:
            async with asyncio.timeout(seconds_left()):
                return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except TimeoutError:
            raise TookTooLong("no answer within the request timeout") from None
        finally:
            self.busy -= 1

    def close(self) -> None:
        """Wait for the pieces that run, forget those that wait."""
        self._pool.shutdown(wait=True, cancel_futures=True)
