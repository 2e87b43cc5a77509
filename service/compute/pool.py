"""Small work runs at once in the event loop, large work in a bounded pool of threads.

Handing work to a thread costs about 0.1 ms, more than most requests take; but work of several milliseconds in the event
loop delays every other request. Work expected to take more than `INLINE_SECONDS` goes to a thread. Each scorer measures
its expected times when it is opened.

Work waits in queues, each a `Source`. When a thread is free, the sources are asked for a batch in turn. One thread more
takes work of less than `SHORT_SECONDS` while all others are busy: a pair of long texts may take each of them long.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import exp, inf
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar

from service.compute.jobs import Job, highest_ratio
from service.errors import Overloaded, TooSlow
from service.observe.timings import INFERENCE, NO_REQUEST, TIMINGS, Timings

INLINE_SECONDS = 0.001
SHORT_SECONDS = 0.02
THREADS = "scorer"  # how the names of the threads begin
_PACE_SECONDS = 5.0  # time constant of the moving average
_SLOWEST = 30.0  # times the expected seconds: longer gaps are a stopped process, not slow work

T = TypeVar("T")


class Batch(NamedTuple):
    """Work for one thread."""

    expected_seconds: float
    work: Callable[[], None]  # must not raise
    done: Callable[[float, float], None]  # called in the event loop with the times of begin and end


class Source(Protocol):
    """A queue of work."""

    def take(self, most: float) -> Batch | None:
        """The next batch of at most so many expected seconds; None if there is none."""

    @property
    def waits(self) -> bool:
        """Whether requests wait."""


class Admission:
    """An admitted request, with the expected seconds of its work."""

    __slots__ = ("announced", "declared", "expected_seconds")

    def __init__(self, declared: float, announced: float) -> None:
        self.announced = announced  # when it was admitted
        self.declared = declared  # for the stages that have begun
        self.expected_seconds = announced

    def declare(self, seconds: float) -> None:
        """Add the expected seconds of another stage that begins."""
        self.declared += seconds
        self.expected_seconds = max(self.expected_seconds, self.declared)


class Pool:
    """Runs batches, at most `threads` at a time outside the event loop, and limits how much may wait."""

    def __init__(
        self,
        threads: int,
        max_waiting: int,
        max_queue_seconds: float = float("inf"),
        max_seconds: float = float("inf"),
    ) -> None:
        """Start the threads.

        Args:
            threads: batches outside the event loop at a time, beside one of short work.
            max_waiting: requests that may wait for a thread.
            max_queue_seconds: how long a request may be expected to wait. Small requests come before large ones, so
                each request ahead counts with at most as much work as the new one brings itself.
            max_seconds: that a request may take.
        """
        self._executor = ThreadPoolExecutor(threads + 1, thread_name_prefix=THREADS)
        self._threads = threads
        self._limit = threads + max_waiting
        self._max_waiting = max_waiting
        self._max_queue_seconds = max_queue_seconds
        self._max_seconds = max_seconds
        self._sources: deque[Source] = deque()
        self._running = 0
        self._beside = False  # whether the thread for short work is busy
        self._called = False
        self._admitted: dict[object, Admission] = {}  # by the timings of the request; of other work by a new object
        self._pace = _Pace(threads)
        self._pieces = _Pieces()

    @property
    def busy(self) -> int:
        """Admitted requests whose work runs or waits."""
        return len(self._admitted)

    @property
    def queue_seconds(self) -> float:
        """Seconds until all admitted work is done, from expected times and the measured pace (`_Pace`)."""
        return sum(each.expected_seconds for each in list(self._admitted.values())) * self._pace.seconds

    @property
    def saturated(self) -> bool:
        """Whether every thread is busy."""
        return self._running >= self._threads

    @contextmanager
    def admitted(self, seconds: float, in_all: float = 0.0) -> Iterator[Timings]:
        """Admit a request at the first stage of its work; it stays admitted through all later stages.

        Args:
            seconds: expected, of this stage.
            in_all: expected, of this and all later stages, where that is known.

        Raises:
            Overloaded: too much is waiting already.
            TooSlow: it would not end in time if it were alone.
        """
        timings = TIMINGS.get()
        whole, possible = seconds / timings.share, self._max_seconds * self._threads
        if whole > possible:
            raise TooSlow(whole, possible)
        if (known := self._admitted.get(timings)) is not None:
            known.declare(seconds)
            yield timings
            return
        of_request = timings is not NO_REQUEST and not timings.ended
        key = timings if of_request else object()
        self._admit(key, Admission(seconds, max(seconds, in_all)))
        if of_request:
            yield timings
            return
        answered = False
        try:
            yield timings
            answered = True
        finally:
            self._release(key, answered)

    def ended(self, timings: Timings, *, answered: bool) -> None:
        """End a request: it is no longer admitted, even if a shared computation goes on."""
        timings.ended = True
        if timings in self._admitted:
            self._release(timings, answered)

    def _admit(self, key: object, admission: Admission) -> None:
        if self.busy >= self._limit:
            raise Overloaded(f"{self._max_waiting} large requests are waiting already", limit=self._max_waiting)
        own = admission.expected_seconds
        wait = sum(min(other.expected_seconds, own) for other in self._admitted.values()) * self._pace.seconds
        if wait > self._max_queue_seconds:
            raise Overloaded(
                f"the wait would be more than {self._max_queue_seconds:g} seconds",
                seconds=wait - self._max_queue_seconds,
            )
        if self._admitted and wait + admission.declared * self._pace.seconds > self._max_seconds:
            message = f"with what is being done it would take more than {self._max_seconds:g} seconds"
            raise Overloaded(message, seconds=wait)
        self._admitted[key] = admission
        self._pace.came(self.busy)

    def _release(self, key: object, answered: bool) -> None:
        announced = self._admitted.pop(key).announced
        self._pace.went(self.busy, announced if answered else None)

    def offer(self, source: Source) -> None:
        """Register a source that has more work.

        It is asked for a batch in the next iteration of the event loop, after all requests of this one have added work.
        """
        if source not in self._sources:
            self._sources.append(source)
        self._call()

    async def run(self, expected_seconds: float, work: Callable[[], T]) -> T:
        """Do one piece of work; see `run_all`."""
        (result,) = await self.run_all([(expected_seconds, work)])
        return result

    async def run_all(
        self, works: Sequence[tuple[float, Callable[[], T]]], *, phase: int = INFERENCE, in_all: float = 0.0
    ) -> list[T]:
        """Do a request's pieces of work: in the event loop if they are small together, else one by one in threads.

        Args:
            works: expected seconds and the function of each piece, at least one.
            phase: of the request's `Timings`.
            in_all: see `admitted`.

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
            pieces = [_Piece(i, seconds, work) for i, (seconds, work) in enumerate(works)]
            job: Job[_Piece, int, T] = Job(pieces, expected_seconds, timings, phase)
            self._pieces.add(job)
            self.offer(self._pieces)
            by_position = await job.future
            return [by_position[i] for i in range(len(works))]

    def close(self) -> None:
        """Drop waiting batches; running ones go on in their threads, which end after them (`THREADS`)."""
        self._sources.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _call(self) -> None:
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._called = False
        asked = 0  # in a row, without a batch
        while asked < len(self._sources) and not (self.saturated and self._beside):
            beside = self.saturated
            source = self._sources.popleft()
            batch = source.take(SHORT_SECONDS if beside else inf)
            if source.waits:
                self._sources.append(source)
            if batch is None:
                asked += source.waits
                continue
            asked = 0
            if batch.expected_seconds <= INLINE_SECONDS:
                batch.done(*_timed(batch.work))
                if self._sources:  # in the event loop's next iteration
                    self._call()
                return
            if beside:
                self._beside = True
            else:
                self._running += 1
            running = asyncio.get_running_loop().run_in_executor(self._executor, partial(_timed, batch.work))
            running.add_done_callback(partial(self._ended, batch, beside))

    def _ended(self, batch: Batch, beside: bool, running: "asyncio.Future[tuple[float, float]]") -> None:
        if beside:
            self._beside = False
        else:
            self._running -= 1
        if not running.cancelled():  # cancelled: the pool was closed
            batch.done(*running.result())
            if self._sources:
                self._call()


class _Pace:
    """Seconds that pass for each second of expected work, while every thread is busy; a moving average.

    Expected times are measured while nothing else runs. The event loop, refusals, other processes on the same cores and
    contention between threads make real times longer by this factor. `Admission` has the expected times; the length of
    the queue in seconds is the product of both.
    """

    def __init__(self, threads: int) -> None:
        """Start at the factor of an idle machine."""
        self._threads = threads
        self._passed, self._expected = 0.5 / threads, 0.5  # half a second of work, as fast as expected
        self._since: float | None = None  # begin of the current interval; None while a thread is free

    @property
    def seconds(self) -> float:
        """The factor."""
        return max(self._passed / self._expected, 1.0 / self._threads)

    def came(self, busy: int) -> None:
        """A request was admitted; `busy` counts it."""
        if self._since is None and busy >= self._threads:
            self._since = perf_counter()

    def went(self, busy: int, expected_seconds: float | None) -> None:
        """A request ended, `busy` are left; `expected_seconds` is None for one that was not answered."""
        if self._since is None:
            return
        now = perf_counter()
        if expected_seconds is not None:
            passed = min(now - self._since, _SLOWEST * expected_seconds)
            # Weighted by time, not by request: requests that take turns end in bunches.
            kept = exp(-passed / _PACE_SECONDS)
            self._passed = kept * self._passed + passed
            self._expected = kept * self._expected + expected_seconds
            self._since = now
        if busy < self._threads:
            self._since = None


class _Piece(NamedTuple):
    position: int
    expected_seconds: float
    work: Callable[[], Any]


class _Pieces:
    """The source of work that is not batched: gives a piece of the request with the highest response ratio."""

    def __init__(self) -> None:
        self._jobs: list[Job[_Piece, int, Any]] = []

    @property
    def waits(self) -> bool:
        return bool(self._jobs)

    def add(self, job: Job[_Piece, int, Any]) -> None:
        """Queue a job."""
        self._jobs.append(job)

    def take(self, most: float) -> Batch | None:
        self._jobs = [job for job in self._jobs if not job.future.done()]
        able = [job for job in self._jobs if job.pieces[-1].expected_seconds <= most]
        if not able:
            return None
        job = highest_ratio(able)
        piece = job.begin(job.pieces[-1].expected_seconds)
        if not job.pieces:
            self._jobs.remove(job)
        outcome: list[Mapping[int, Any] | Exception] = []

        def work() -> None:
            try:
                outcome.append({piece.position: piece.work()})
            except Exception as error:  # raised where the request waits
                outcome.append(error)

        return Batch(piece.expected_seconds, work, lambda began, ended: job.receive(began, ended, outcome[0]))


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """Do the work; the times of its begin and end."""
    began = perf_counter()
    work()
    return began, perf_counter()
