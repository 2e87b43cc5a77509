"""Where work runs: small work at once in the event loop, large work in a bounded pool of threads.

A hop to a thread costs about 0.1 ms, which is more than most requests take altogether; but work of several
milliseconds in the event loop makes every other caller wait. `INLINE_SECONDS` is the line between them, held
against an *expected* time that each scorer measures when it is opened.

Work waits with its source, and a source is asked for its next batch only when a thread is free: so a batch holds
whatever has come in until then, and sources take turns.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Generic, NamedTuple, Protocol, TypeVar

from service.errors import Overloaded
from service.timings import INFERENCE, NOBODYS, QUEUE, TIMINGS, Timings

INLINE_SECONDS = 0.001

T = TypeVar("T")


class Batch(NamedTuple):
    """Work for one thread."""

    expected_seconds: float
    work: Callable[[], None]  # does it; must not raise
    done: Callable[[float, float], None]  # called in the event loop: when it began, when it ended


class Source(Protocol):
    """Where work waits."""

    def take(self) -> Batch | None:
        """The next batch; None when all who waited have left."""

    @property
    def waits(self) -> bool:
        """Whether there is more."""


class Workers:
    """Runs batches, never more than `threads` outside the event loop, and never a long queue of them."""

    def __init__(self, threads: int, max_waiting: int, max_queue_seconds: float = float("inf")) -> None:
        """Start the threads.

        Args:
            threads: batches outside the event loop at a time.
            max_waiting: requests that may wait for one.
            max_queue_seconds: how long a request may be expected to wait. Requests take turns, so each of those before
                it makes it wait for as much work as it brings itself at most: a small one does not wait for a large
                one's end, and is not refused because of it.
        """
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="scorer")
        self._threads = threads
        self._limit = threads + max_waiting
        self._max_waiting = max_waiting
        self._max_queue_seconds = max_queue_seconds
        self._sources: deque[Source] = deque()
        self._running = 0
        self._called = False
        self._let_in: list[float] = []  # what the work of each request that was let in is expected to take

    @property
    def busy(self) -> int:
        """Requests let in: their work runs or waits."""
        return len(self._let_in)

    @property
    def queue_seconds(self) -> float:
        """What that is expected to take, one after another."""
        return sum(self._let_in)

    @property
    def saturated(self) -> bool:
        """Whether every thread is busy."""
        return self._running >= self._threads

    @contextmanager
    def admitted(self, expected_seconds: float) -> Iterator[Timings]:
        """Let a request's work in; a request that was let in once is not turned away half way.

        Raises:
            Overloaded: too much is waiting already.
        """
        timings = TIMINGS.get()
        if not timings.admitted:
            if self.busy >= self._limit:
                raise Overloaded(f"{self._max_waiting} large requests are waiting already", limit=self._max_waiting)
            wait = sum(min(each, expected_seconds) for each in self._let_in) / self._threads
            if wait > self._max_queue_seconds:
                raise Overloaded(
                    f"the wait would be more than {self._max_queue_seconds:g} seconds",
                    seconds=wait - self._max_queue_seconds,
                )
            timings.admitted = timings is not NOBODYS
        self._let_in.append(expected_seconds)
        try:
            yield timings
        finally:
            self._let_in.remove(expected_seconds)

    def offer(self, source: Source) -> None:
        """Tell of a source that has work, and had none before.

        It is asked in the event loop's next turn: what other requests of this turn bring comes into the same batch.
        """
        self._sources.append(source)
        self._call()

    async def run(self, expected_seconds: float, work: Callable[[], T], phase: int = INFERENCE) -> T:
        """Do one piece of work, here or in a thread; its time is noted as that of a phase.

        Raises:
            Overloaded: too much is waiting already.
        """
        if expected_seconds <= INLINE_SECONDS:
            began = perf_counter()
            result = work()
            TIMINGS.get().spent(phase, began, perf_counter())
            return result
        with self.admitted(expected_seconds) as timings:
            piece = _Piece(expected_seconds, work, timings, phase)
            self.offer(piece)
            return await piece.future

    def close(self) -> None:
        """Wait for the batches that run, forget those that wait."""
        self._sources.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _call(self) -> None:
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._called = False
        while self._sources and not self.saturated:
            source = self._sources.popleft()
            batch = source.take()
            if source.waits:
                self._sources.append(source)
            if batch is None:
                continue
            if batch.expected_seconds <= INLINE_SECONDS:
                batch.done(*_timed(batch.work))
                if self._sources:  # after whatever else the event loop has to do
                    self._call()
                return
            self._running += 1
            running = asyncio.get_running_loop().run_in_executor(self._pool, partial(_timed, batch.work))
            running.add_done_callback(partial(self._ended, batch))

    def _ended(self, batch: Batch, running: "asyncio.Future[tuple[float, float]]") -> None:
        self._running -= 1
        if not running.cancelled():  # it is where the pool was closed
            batch.done(*running.result())
            if self._sources:
                self._call()


class _Piece(Generic[T]):
    """A source of one batch, which is one request's."""

    def __init__(self, expected_seconds: float, work: Callable[[], T], timings: Timings, phase: int) -> None:
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._expected_seconds = expected_seconds
        self._work = work
        self._timings = timings
        self._phase = phase
        self._handed = perf_counter()
        self._finish: Callable[[], object] = self.future.cancel
        self.waits = True

    def take(self) -> Batch | None:
        self.waits = False
        return None if self.future.done() else Batch(self._expected_seconds, self._do, self._done)

    def _do(self) -> None:
        try:
            self._finish = partial(self.future.set_result, self._work())
        except Exception as error:  # it belongs to who waits
            self._finish = partial(self.future.set_exception, error)

    def _done(self, began: float, ended: float) -> None:
        if not self.future.done():
            self._timings.spent(QUEUE, self._handed, began)
            self._timings.spent(self._phase, began, ended)
            self._finish()


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """When it began, when it ended."""
    began = perf_counter()
    work()
    return began, perf_counter()
