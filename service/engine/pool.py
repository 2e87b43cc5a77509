"""Small work runs at once in the event loop, large work in a bounded pool of threads.

Handing work to a thread costs about 0.1 ms, more than most requests take; but work of several milliseconds in the event
loop delays every other request. Work expected to take more than `INLINE_SECONDS` goes to a thread. Each scorer measures
its expected times when it is opened.

The work of a request is a `Job` of several pieces. It waits in queues, each a `JobQueue`. When a thread is free, it
gets a batch of the queue whose turn it is (`service/engine/concurrency.py`). One thread more takes work of less than
`SHORT_SECONDS` while all others are busy: a pair of long texts may take each of them long.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from service.engine.concurrency import SHORT_SECONDS, AdmittedWork, ConcurrencyLimit, Pace
from service.errors import Overloaded, TooSlow
from service.observe.metrics import INFERENCE, NO_REQUEST, TIMINGS, Timings

INLINE_SECONDS = 0.001
IN_A_THREAD = 2 * INLINE_SECONDS  # at least, of what must not run in the event loop
THREADS = "scorer"  # how the names of the threads begin

T = TypeVar("T")
P = TypeVar("P", bound="Piece")
R = TypeVar("R")  # a result


class Piece(Protocol):
    """A piece of a request's work."""

    @property
    def position(self) -> int:
        """By which its result is known among those of the request."""

    @property
    def expected_seconds(self) -> float:
        """How long it takes."""


class Job(Generic[P, R]):
    """The pieces of work of one request; `future` gets their results, by position, when the last piece is done."""

    __slots__ = ("_left", "_phase", "_results", "_seen", "admission", "future", "pieces")

    def __init__(self, pieces: Sequence[P], admission: AdmittedWork, phase: int = INFERENCE) -> None:
        """Queue at least one piece of an admitted request, whose timings get their time in the phase `phase`."""
        self.future: asyncio.Future[dict[int, R]] = asyncio.get_running_loop().create_future()
        self.pieces = list(pieces)[::-1]  # not begun; the next one last
        self.admission = admission
        self._seen = perf_counter()  # end of the time that is already in its timings
        self._left = len(pieces)
        self._results: dict[int, R] = {}
        self._phase = phase

    @property
    def may_begin(self) -> bool:
        """Whether the request has time left, or is over while others wait for its work."""
        timings = self.admission.timings
        return timings.ended or timings.left() > 0

    def receive(self, piece: P, began: float, ended: float, outcome: R | Exception) -> None:
        """Add the result of a piece; an exception fails the whole request."""
        self.admission.did(piece.expected_seconds)
        if self.future.done():  # cancelled, or another piece has failed
            return
        self._seen = self.admission.timings.waited(self._phase, self._seen, began, ended)
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
            return
        self._results[piece.position] = outcome
        self._left -= 1
        if not self._left:
            self.future.set_result(self._results)


class Batch(NamedTuple):
    """Work for one thread."""

    expected_seconds: float
    work: Callable[[], None]  # must not raise
    done: Callable[[float, float], None]  # called in the event loop with the times of begin and end


class JobQueue(ABC, Generic[P, R]):
    """Jobs that wait for a thread."""

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._jobs: list[Job[P, R]] = []

    @property
    def waits(self) -> bool:
        """Whether requests wait in this queue."""
        return bool(self._jobs)

    def add(self, job: Job[P, R]) -> None:
        """Append a job to the queue."""
        self._jobs.append(job)

    def turn(self, most: float) -> float:
        """The lowest turn of its requests that have a piece of at most so many expected seconds, or infinity."""
        able = (job for job in self._waiting() if job.pieces[-1].expected_seconds <= most and job.may_begin)
        return min((job.admission.turn for job in able), default=inf)

    @abstractmethod
    def take(self, most: float) -> Batch | None:
        """The next batch of at most so many expected seconds; None if there is none."""

    def _waiting(self) -> list[Job[P, R]]:
        """Those that nobody has cancelled, and of which no piece has failed; what cannot end in time any more fails."""
        left = []
        for job in self._jobs:
            if job.future.done():
                continue
            if job.admission.failure is not None:
                job.future.set_exception(job.admission.failure)
            else:
                left.append(job)
        self._jobs = left
        return left


class Pool:
    """Runs batches, at most `threads` at a time outside the event loop, and limits how much may wait."""

    def __init__(
        self,
        threads: int,
        max_queued_requests: int,
        max_queue_seconds: float = inf,
        max_seconds: float = inf,
        *,
        dropped: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Start the threads of the pool.

        Args:
            threads: batches outside the event loop at a time, beside one of short work.
            max_queued_requests: requests that may wait for a thread.
            max_queue_seconds: how long a request may be expected to wait; those whose turn is earlier come before it.
            max_seconds: that a request may take.
            dropped: called for each request that ends before all of its work was begun.
            clock: that of `Timings`.
        """
        self._executor = ThreadPoolExecutor(threads + 1, thread_name_prefix=THREADS)
        self._threads = threads
        self._most_admitted = threads + max_queued_requests
        self._max_queued = max_queued_requests
        self._dropped = dropped
        self._clock = clock
        self._queues: list[JobQueue[Any, Any]] = []
        self._running = 0
        self._short_runs = False  # whether the thread for short work is busy
        self._called = False
        self._admitted: dict[object, AdmittedWork] = {}  # by the timings of the request; of other work by a new object
        self._pace = Pace(clock)
        self._limit = ConcurrencyLimit(
            self._pace, threads, max_queue_seconds=max_queue_seconds, max_seconds=max_seconds
        )
        self._idle_since: list[float] = []  # since when threads have been free although work waits
        self._pieces = _WorkQueue()

    @property
    def busy(self) -> int:
        """Admitted requests whose work runs or waits."""
        return len(self._admitted)

    @property
    def queue_seconds(self) -> float:
        """Seconds until all admitted work is done, from expected times and the measured pace (`Pace`)."""
        return self._limit.seconds_of(list(self._admitted.values()))

    @property
    def saturated(self) -> bool:
        """Whether every thread is busy."""
        return self._running >= self._threads

    @property
    def possible(self) -> float:
        """Expected seconds of work that surely end in the present request's time, were it alone."""
        return self._limit.possible(TIMINGS.get())

    def refusal(self, timings: Timings, seconds: float) -> Overloaded | None:
        """Why a request of so many expected seconds would not be let in now; None if it would."""
        return self._refusal(self._limit.admission(timings, seconds, seconds, now := self._clock()), now)

    @contextmanager
    def admitted(self, seconds: float, in_all: float = 0.0, *, longest: float = 0.0) -> Iterator[AdmittedWork]:
        """Admit a request at the first stage of its work; it stays admitted through all later stages.

        Args:
            seconds: expected, of this stage.
            in_all: expected, of this and all later stages, where that is known.
            longest: expected, of the longest piece of this stage.

        Raises:
            Overloaded: too much is waiting already.
            TooSlow: it would not end in time if it were alone.
        """
        timings = TIMINGS.get()
        whole = max(seconds / timings.share, in_all)
        timings.expected = max(timings.expected, whole)
        self._limit.check_possible(timings, seconds / timings.share, longest=longest, guessed=in_all)
        if (known := self._admitted.get(timings)) is not None:
            self._limit.declare(known, seconds, seconds / timings.share, guessed=in_all > 0)
            yield known
            return
        admission = self._limit.admission(timings, seconds, whole, now := self._clock())
        if (refusal := self._refusal(admission, now)) is not None:
            raise refusal
        self._limit.enter(admission)
        if timings is not NO_REQUEST and not timings.ended:
            self._admitted[timings] = admission
            yield admission
            return
        key = object()
        self._admitted[key] = admission
        try:
            yield admission
        finally:
            self._release(key)

    def ended(self, timings: Timings) -> None:
        """End a request: it is no longer admitted, even if a shared computation goes on."""
        timings.ended = True
        if timings in self._admitted:
            self._release(timings)
        if self._queues:
            self._call()  # what was over for this request may be shared with others, and goes on

    def _release(self, key: object) -> None:
        self._limit.leave(self._admitted.pop(key), last=not self._admitted)

    def _refusal(self, admission: AdmittedWork, now: float) -> Overloaded | None:
        if self.busy >= self._most_admitted:
            return Overloaded(f"{self._max_queued} large requests are waiting already", limit=self._max_queued)
        return self._limit.refusal(admission, self._admitted.values(), now)

    async def done(self, job: Job[P, R], queue: JobQueue[P, R]) -> Mapping[int, R]:
        """The results of a job, by position, which waits in this queue.

        The queue is asked for a batch in the event loop's next iteration: all of this one have added work by then.
        """
        queue.add(job)
        if queue not in self._queues:
            self._queues.append(queue)
        self._call()
        try:
            return await job.future
        except (asyncio.CancelledError, Overloaded, TooSlow):
            if job.pieces:
                self._dropped()
            raise

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
        longest = max(seconds for seconds, _ in works)
        with self.admitted(expected_seconds, in_all, longest=longest) as admission:
            pieces = [_Work(i, seconds, work) for i, (seconds, work) in enumerate(works)]
            by_position = await self.done(Job(pieces, admission, phase), self._pieces)
            return [by_position[i] for i in range(len(works))]

    def close(self) -> None:
        """Drop waiting batches; running ones go on in their threads, which end after them (`THREADS`)."""
        self._queues.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _call(self) -> None:
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._called = False
        while self._queues and not (self.saturated and self._short_runs):
            short = self.saturated
            batch = self._next(SHORT_SECONDS if short else inf)
            if batch is None:
                return
            if batch.expected_seconds <= INLINE_SECONDS:
                batch.done(*_timed(batch.work))
                if self._queues:  # in the event loop's next iteration
                    self._call()
                return
            since = self._clock()
            if short:
                self._short_runs = True
            else:
                self._running += 1
                since = self._idle_since.pop() if self._idle_since else since
            running = asyncio.get_running_loop().run_in_executor(self._executor, partial(_timed, batch.work))
            running.add_done_callback(partial(self._ended, batch, short, since))

    def _next(self, most: float) -> Batch | None:
        """A batch of the queue with the lowest turn; without those that no longer wait."""
        for turn, _, queue in sorted((queue.turn(most), i, queue) for i, queue in enumerate(self._queues)):
            batch = queue.take(most) if turn < inf else None
            if not queue.waits:
                self._queues.remove(queue)
            if batch is not None:
                return batch
        return None

    def _ended(self, batch: Batch, short: bool, since: float, running: "asyncio.Future[tuple[float, float]]") -> None:
        if short:
            self._short_runs = False
        else:
            self._running -= 1
        if running.cancelled():  # the pool was closed
            return
        began, ended = running.result()
        self._pace.ran(batch.expected_seconds, ended - min(since, began))
        self._limit.did(batch.expected_seconds)
        batch.done(began, ended)
        self._limit.give_up(self._admitted.values())
        if not self._queues:
            self._idle_since.clear()
            return
        if not short:
            self._idle_since.append(ended)
        self._call()


class _Work(NamedTuple):
    """A piece of work that is not batched."""

    position: int
    expected_seconds: float
    work: Callable[[], Any]


class _WorkQueue(JobQueue[_Work, Any]):
    """Gives a piece of the request with the lowest turn."""

    def take(self, most: float) -> Batch | None:
        """One piece of work."""
        able = [job for job in self._waiting() if job.may_begin and job.pieces[-1].expected_seconds <= most]
        if not able:
            return None
        job = min(able, key=lambda each: each.admission.turn)
        piece = job.pieces.pop()
        if not job.pieces:
            self._jobs.remove(job)
        outcome: list[Any | Exception] = []

        def work() -> None:
            try:
                outcome.append(piece.work())
            except Exception as error:  # raised where the request waits
                outcome.append(error)

        return Batch(piece.expected_seconds, work, lambda began, ended: job.receive(piece, began, ended, outcome[0]))


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """Do the work; the times of its begin and end."""
    began = perf_counter()
    work()
    return began, perf_counter()
