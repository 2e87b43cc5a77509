"""Where work runs: small work at once in the event loop, large work in a bounded pool of threads.

A hop to a thread costs about 0.1 ms, which is more than most requests take altogether; but work of several
milliseconds in the event loop makes every other caller wait. `INLINE_SECONDS` is the line between them, held
against an *expected* time that each scorer measures when it is opened.

Work waits with its source, and a source is asked for its next batch only when a thread is free: so a batch holds
whatever has come in until then, and sources take turns.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import exp
from time import perf_counter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from service.errors import Overloaded
from service.timings import INFERENCE, NOBODYS, TIMINGS, Place, Timings

INLINE_SECONDS = 0.001
_PACE_SECONDS = 5.0  # of work, that the pace is learnt from
_LEAST_NEED = 1e-6
_SLOWEST = 30.0  # a process that was stopped for a minute has not learnt anything of its work

T = TypeVar("T")


class Batch(NamedTuple):
    """Work for one thread."""

    expected_seconds: float
    work: Callable[[], None]  # does it; must not raise
    done: Callable[[float, float], None]  # called in the event loop: when it began, when it ended


class Waiting(Protocol):
    """What one request waits for."""

    came: float  # as `perf_counter` tells it
    needs: float  # expected seconds of what is not begun


W = TypeVar("W", bound=Waiting)


def highest_ratio(waiting: Iterable[W]) -> W:
    """Whose turn it is: the one whose time waited is the largest multiple of the time it still needs.

    (Highest response ratio next, Brinch Hansen 1971.) Of like requests it is the one that came first, a small one
    before a large one, and a large one all the same once it has waited long.
    """
    now = perf_counter()
    return max(waiting, key=lambda each: (now - each.came) / max(each.needs, _LEAST_NEED))


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
            max_queue_seconds: how long a request may be expected to wait. Small requests come before large ones, so
                each of those before it makes it wait for about as much work as it brings itself at most: a small one
                does not wait for a large one's end, and is not refused because of it.
        """
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="scorer")
        self._threads = threads
        self._limit = threads + max_waiting
        self._max_waiting = max_waiting
        self._max_queue_seconds = max_queue_seconds
        self._sources: deque[Source] = deque()
        self._running = 0
        self._called = False
        self._let_in: dict[Place, None] = {}
        self._pace = _Pace(threads)
        self._pieces = _Pieces()

    @property
    def busy(self) -> int:
        """Requests let in and not answered yet: their work runs or waits."""
        return len(self._let_in)

    @property
    def queue_seconds(self) -> float:
        """How long they will take in all, at the pace of late."""
        return sum(place.expected_seconds for place in self._let_in) * self._pace.seconds

    @property
    def saturated(self) -> bool:
        """Whether every thread is busy."""
        return self._running >= self._threads

    @contextmanager
    def admitted(self, seconds: float, in_all: float = 0.0) -> Iterator[Timings]:
        """Let a request in at the first stage of its work; it keeps its place until it ends, whatever comes next.

        Args:
            seconds: that this stage is expected to take.
            in_all: that it and all that follow are, where that is known.

        Raises:
            Overloaded: too much is waiting already.
        """
        timings = TIMINGS.get()
        if timings.place is not None:
            timings.place.declare(seconds)
            yield timings
            return
        place = self._let(Place(seconds, max(seconds, in_all)))
        if timings is not NOBODYS and not timings.ended:
            timings.place = place
            yield timings
            return
        answered = False
        try:
            yield timings
            answered = True
        finally:
            self._forget(place, answered)

    def ended(self, timings: Timings, *, answered: bool) -> None:
        """A request has ended; what is still done for it is done for others."""
        timings.ended = True
        if timings.place is not None:
            self._forget(timings.place, answered)

    def _let(self, place: Place) -> Place:
        if self.busy >= self._limit:
            raise Overloaded(f"{self._max_waiting} large requests are waiting already", limit=self._max_waiting)
        own = place.expected_seconds
        wait = sum(min(other.expected_seconds, own) for other in self._let_in) * self._pace.seconds
        if wait > self._max_queue_seconds:
            raise Overloaded(
                f"the wait would be more than {self._max_queue_seconds:g} seconds",
                seconds=wait - self._max_queue_seconds,
            )
        self._let_in[place] = None
        self._pace.came(self.busy)
        return place

    def _forget(self, place: Place, answered: bool) -> None:
        del self._let_in[place]
        self._pace.went(self.busy, place.announced if answered else None)

    def offer(self, source: Source) -> None:
        """Tell of a source that has work, and had none before.

        It is asked in the event loop's next turn: what other requests of this turn bring comes into the same batch.
        """
        self._sources.append(source)
        self._call()

    async def run(self, expected_seconds: float, work: Callable[[], T]) -> T:
        """Do one piece of work, here or in a thread.

        Raises:
            Overloaded: too much is waiting already.
        """
        (result,) = await self.run_all([(expected_seconds, work)])
        return result

    async def run_all(
        self, works: Sequence[tuple[float, Callable[[], T]]], *, phase: int = INFERENCE, in_all: float = 0.0
    ) -> list[T]:
        """Do a request's pieces of work, between which others have their turns; here, where all of it is small.

        Args:
            works: expected seconds and what to do, at least one.
            phase: whose time it is.
            in_all: expected seconds of these and of the stages that follow, where that is known.

        Raises:
            Overloaded: too much is waiting already.
        """
        expected_seconds = sum(seconds for seconds, _ in works)
        if expected_seconds <= INLINE_SECONDS:
            began = perf_counter()
            results = [work() for _, work in works]
            TIMINGS.get().spent(phase, began, perf_counter())
            return results
        with self.admitted(expected_seconds, in_all) as timings:
            job = _Job(works, timings, phase)
            if self._pieces.add(job):
                self.offer(self._pieces)
            return await job.future

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


class _Pace:
    """Seconds that pass for each second of work announced, as long as there is always some to do.

    Expected times are measured when nothing else runs, and of one stage of a request; what the event loop does for it,
    refusals, other processes on the same cores and threads that wait for each other come on top. This says how much.
    """

    def __init__(self, threads: int) -> None:
        """Until it is known, what is expected is what passes."""
        self._threads = threads
        # As if half a second of work had been done, as fast as expected.
        self._passed, self._expected = 0.5 / threads, 0.5
        self._since: float | None = None  # when the work accounted for next began; None: there was too little

    @property
    def seconds(self) -> float:
        """For one."""
        return max(self._passed / self._expected, 1.0 / self._threads)

    def came(self, busy: int) -> None:
        """A request was let in, and so many are there now."""
        if self._since is None and busy >= self._threads:
            self._since = perf_counter()

    def went(self, busy: int, expected_seconds: float | None) -> None:
        """A request left, and so many are there still; without a time one that was not answered."""
        if self._since is None:
            return
        now = perf_counter()
        if expected_seconds is not None:
            passed = min(now - self._since, _SLOWEST * expected_seconds)
            # By time and not by request: those who take turns end in bunches.
            kept = exp(-passed / _PACE_SECONDS)
            self._passed = kept * self._passed + passed
            self._expected = kept * self._expected + expected_seconds
            self._since = now
        if busy < self._threads:
            self._since = None


class _Job(Generic[T]):
    """The pieces of one request."""

    def __init__(self, works: Sequence[tuple[float, Callable[[], T]]], timings: Timings, phase: int) -> None:
        self.future: asyncio.Future[list[T]] = asyncio.get_running_loop().create_future()
        self._works = list(enumerate(works))[::-1]  # the next one last
        self.needs = sum(seconds for seconds, _ in works)
        self._left = len(works)
        self._results: dict[int, T] = {}
        self._timings = timings
        self._phase = phase
        self.came = self._seen = perf_counter()  # the latter: until when its time is accounted for

    @property
    def waits(self) -> bool:
        return bool(self._works) and not self.future.done()

    def next(self) -> Batch:
        place, (expected_seconds, work) = self._works.pop()
        self.needs -= expected_seconds
        outcome: list[T | Exception] = []

        def do() -> None:
            try:
                outcome.append(work())
            except Exception as error:  # it belongs to who waits
                outcome.append(error)

        def done(began: float, ended: float) -> None:
            if self.future.done():  # its caller has left, or another piece has failed
                return
            self._seen = self._timings.waited(self._phase, self._seen, began, ended)
            (result,) = outcome
            if isinstance(result, Exception):
                self.future.set_exception(result)
                return
            self._results[place] = result
            self._left -= 1
            if not self._left:
                self.future.set_result([self._results[i] for i in range(len(self._results))])

        return Batch(expected_seconds, do, done)


class _Pieces:
    """A source: a piece of the request with the highest response ratio, of all that wait."""

    def __init__(self) -> None:
        self._jobs: list[_Job[Any]] = []

    @property
    def waits(self) -> bool:
        return bool(self._jobs)

    def add(self, job: _Job[Any]) -> bool:
        """Line it up; whether there was none."""
        self._jobs.append(job)
        return len(self._jobs) == 1

    def take(self) -> Batch | None:
        self._jobs = [job for job in self._jobs if job.waits]
        if not self._jobs:
            return None
        job = highest_ratio(self._jobs)
        batch = job.next()
        if not job.waits:
            self._jobs.remove(job)
        return batch


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """When it began, when it ended."""
    began = perf_counter()
    work()
    return began, perf_counter()
