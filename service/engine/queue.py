"""The queue: work waits here for a thread, and the lowest turn is served first (`service/engine/admission.py`).

A request's work comes in pieces, each expected to take some 50 ms at most. A thread takes one, in a batch with like
pieces of others (`service/engine/batcher.py`). Work of a millisecond is done in the event loop: handing it over takes a
tenth of that, and delays nobody. While all threads are busy, one more takes pieces of `SHORT_SECONDS` at most.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from service.engine.admission import SHORT_SECONDS, Admission, Admissions, RequestContext
from service.errors import Overloaded
from service.observe.metrics import INFERENCE

INLINE_SECONDS = 0.001
MIN_THREAD_SECONDS = 2 * INLINE_SECONDS  # lower bound on the estimate of work that must run in a thread
THREADS = "scorer"  # how the names of the threads begin
_LATE_CHECK_SECONDS = 0.05  # between two checks for requests that will miss their deadline

T = TypeVar("T")


class Piece(Protocol):
    """A piece of a request's work."""

    @property
    def expected_seconds(self) -> float:
        """How long it takes."""


P = TypeVar("P", bound=Piece)
BatchEntry = tuple["Job[Any]", int, Any]  # a job, the index of the piece in it, the piece
Q = TypeVar("Q", bound=Piece, contravariant=True)


class Batch(Protocol[Q]):
    """One piece, or pieces of several requests that can run together, for one thread."""

    @property
    def expected_seconds(self) -> float:
        """How long all of it takes."""

    def add(self, piece: Q, max_seconds: float) -> bool:
        """Take one more piece if that pays, and all takes `max_seconds` at most, as expected; whether it did."""

    def run(self) -> list[Any]:
        """The result of each piece, or the exception that it raised; in any thread."""


class Job(Generic[P]):
    """Pieces of work of one request; `future` gets their results, in their order, when the last one is done."""

    __slots__ = ("_phase", "_pieces_left", "_results", "_timed_until", "admission", "begin", "future", "kind", "pieces")

    def __init__(
        self,
        pieces: Sequence[P],
        admission: Admission,
        begin: Callable[[P], Batch[P]],
        *,
        kind: Hashable = None,
        phase: int = INFERENCE,
    ) -> None:
        """Make a job of at least one piece of an admitted request.

        Args:
            pieces: of its work.
            admission: of the request.
            begin: begins a batch with a piece.
            kind: pieces of jobs of one kind may share a batch; those without one are alone.
            phase: of the request's timings.
        """
        self.future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.pieces = list(enumerate(pieces))[::-1]  # not begun; the next one last
        self.admission = admission
        self.begin = begin
        self.kind = kind
        self._phase = phase
        self._timed_until = perf_counter()  # end of the time that is already in its timings
        self._pieces_left = len(pieces)
        self._results: list[Any] = [None] * len(pieces)

    @property
    def can_begin(self) -> bool:
        """Whether a piece may begin: the request has time left."""
        return not self.future.done() and self.admission.context.left > 0

    def receive(self, position: int, began: float, ended: float, outcome: Any) -> None:
        """Add the result of a piece; an exception fails the whole job."""
        if self.future.done():  # cancelled, or another piece has failed
            return
        self._timed_until = self.admission.context.spent_in_thread(self._phase, self._timed_until, began, ended)
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
            return
        self._results[position] = outcome
        self._pieces_left -= 1
        if not self._pieces_left:
            self.future.set_result(self._results)


class Queue:
    """Runs pieces of work, at most `threads` batches at a time outside the event loop, and one of short work."""

    def __init__(
        self,
        threads: int,
        max_queue_seconds: float = inf,
        max_seconds: float = inf,
        *,
        on_drop: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Start the queue's threads.

        Args:
            threads: batches outside the event loop at a time, beside one of short work.
            max_queue_seconds: how long a request may be expected to wait.
            max_seconds: that a request may take.
            on_drop: called for each request that ends before all of its work was begun.
            clock: that of contexts.
        """
        self.admissions = Admissions(threads, max_queue_seconds, max_seconds, clock)
        self._executor = ThreadPoolExecutor(threads + 1, thread_name_prefix=THREADS)  # one more, for short work
        self._threads = threads
        self._on_drop = on_drop
        self._clock = clock
        self._jobs: list[Job[Any]] = []
        self._running = 0
        self._short_thread_busy = False  # whether the thread for short work is busy
        self._dispatch_scheduled = False
        self._late_checked_at = -inf  # when requests that will miss their deadline were last looked for
        self._idle_since: list[float] = []  # since when threads have been free although work waits

    @property
    def saturated(self) -> bool:
        """Whether every thread is busy."""
        return self._running >= self._threads

    async def run(self, context: RequestContext, expected_seconds: float, work: Callable[[], T]) -> T:
        """Do one piece of work; see `run_all`."""
        (result,) = await self.run_all(context, [(expected_seconds, work)])
        return result

    async def run_all(
        self,
        context: RequestContext,
        tasks: Sequence[tuple[float, Callable[[], T]]],
        *,
        phase: int = INFERENCE,
        total_seconds: float = 0.0,
    ) -> list[T]:
        """Do a request's pieces of work: in the event loop if they are small together, else one by one in threads.

        Args:
            context: of the request.
            tasks: expected seconds and the function of each piece, at least one.
            phase: of the request's timings.
            total_seconds: expected of this and all later stages of the request; 0: nothing follows.

        Raises:
            Overloaded: too much is waiting already.
            TooSlow: it would not end in time if it were alone.
        """
        expected_seconds = sum(seconds for seconds, _ in tasks)
        if expected_seconds <= INLINE_SECONDS:
            began = perf_counter()
            results = [work() for _, work in tasks]
            context.spent(phase, began, perf_counter())
            return results
        admission = self.admissions.admit(context, expected_seconds, total_seconds)
        return await self.submit(Job([_SingleWork(*task) for task in tasks], admission, _own_batch, phase=phase))

    def submit(self, job: Job[P]) -> "asyncio.Future[list[Any]]":
        """Queue a job; its future gets the results of its pieces.

        Work begins in the event loop's next iteration: all of this one have added theirs by then. The future raises
        `Overloaded` where the job cannot end in time any more, or what a piece raised; cancelling it drops the rest.
        """
        self._jobs.append(job)
        self._schedule_dispatch()
        return job.future

    def release(self, context: RequestContext) -> None:
        """End a request: it is no longer admitted; twice is no error."""
        context.ended = True
        self.admissions.leave(context)
        if self._jobs:
            self._schedule_dispatch()

    def close(self) -> None:
        """Drop waiting work; what runs goes on in its thread, which ends after it (`THREADS`)."""
        self._jobs.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _schedule_dispatch(self) -> None:
        if not self._dispatch_scheduled:
            self._dispatch_scheduled = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        """Give work to all threads that are free."""
        self._dispatch_scheduled = False
        while self._jobs and not (self.saturated and self._short_thread_busy):
            short = self.saturated
            taken = self._next_batch(SHORT_SECONDS if short else inf)
            if taken is None:
                return
            batch, entries = taken
            if batch.expected_seconds <= INLINE_SECONDS:
                self._deliver(batch, entries, *_run_timed(batch))
                if self._jobs:  # in the event loop's next iteration
                    self._schedule_dispatch()
                return
            since = self._clock()
            if short:
                self._short_thread_busy = True
            else:
                self._running += 1
                since = self._idle_since.pop() if self._idle_since else since
            running = asyncio.get_running_loop().run_in_executor(self._executor, partial(_run_timed, batch))
            running.add_done_callback(partial(self._batch_done, batch, entries, short, since))

    def _next_batch(self, max_seconds: float) -> "tuple[Batch[Any], list[BatchEntry]] | None":
        """The next batch: begun by the job of the lowest turn whose next piece takes `max_seconds` at most."""
        self._drop_ended()
        self._jobs.sort(key=lambda job: job.admission.turn)
        first = self._first(max_seconds)
        if first is None:
            return None
        position, piece = first.pieces.pop()
        batch, entries = first.begin(piece), [(first, position, piece)]
        for job in self._jobs if first.kind is not None else ():
            if job is first or job.kind != first.kind or not job.can_begin:
                continue
            if batch.add(job.pieces[-1][1], max_seconds):
                entries.append((job, *job.pieces.pop()))
        self._jobs = [job for job in self._jobs if job.pieces]
        return batch, entries

    def _first(self, max_seconds: float) -> Job[Any] | None:
        """The first job that can begin with a piece of `max_seconds` at most."""
        for job in self._jobs:
            if job.pieces[-1][1].expected_seconds <= max_seconds and job.can_begin:
                return job
        return None

    def _drop_ended(self) -> None:
        """Drop jobs that cannot end in time, that nobody waits for, or of which a piece has failed."""
        for job in self._jobs:
            if job.admission.failure is not None and not job.future.done():
                job.future.set_exception(job.admission.failure)
            if job.future.cancelled() or (job.future.done() and isinstance(job.future.exception(), Overloaded)):
                self._on_drop()
        self._jobs = [job for job in self._jobs if not job.future.done()]

    def _batch_done(
        self,
        batch: Batch[Any],
        entries: list[BatchEntry],
        short: bool,
        since: float,
        running: "asyncio.Future[tuple[float, float, list[Any]]]",
    ) -> None:
        if short:
            self._short_thread_busy = False
        else:
            self._running -= 1
        if running.cancelled():  # the queue was closed
            return
        began, ended, outcomes = running.result()
        self._deliver(batch, entries, began, ended, outcomes, ended - min(since, began))
        if ended >= self._late_checked_at + _LATE_CHECK_SECONDS:
            self._late_checked_at = ended
            self.admissions.mark_late()
        if not self._jobs:
            self._idle_since.clear()
            return
        if not short:
            self._idle_since.append(ended)
        self._schedule_dispatch()

    def _deliver(
        self,
        batch: Batch[Any],
        entries: list[BatchEntry],
        began: float,
        ended: float,
        outcomes: list[Any],
        seconds: float | None = None,
    ) -> None:
        """Give the outcomes of a batch to its jobs; `seconds` as of `Admissions.done`."""
        parts = [(job.admission, piece.expected_seconds) for job, _, piece in entries]
        self.admissions.done(parts, batch.expected_seconds, seconds)
        for (job, position, _), outcome in zip(entries, outcomes, strict=True):
            job.receive(position, began, ended, outcome)
        # The frames of an exception's traceback refer to the thread's, and those to this list: a reference cycle, which
        # would keep the request until the next garbage collection.
        outcomes.clear()


class _SingleWork(NamedTuple):
    """A piece of work that is not batched, and its own batch."""

    expected_seconds: float
    work: Callable[[], Any]

    def add(self, _: object, __: float) -> bool:
        """Take no piece: each is alone."""
        return False

    def run(self) -> list[Any]:
        """Its result, or the exception that it raised."""
        try:
            return [self.work()]
        except Exception as error:  # raised where the request waits
            return [error]


def _own_batch(piece: _SingleWork) -> _SingleWork:
    """Single work is a batch already."""
    return piece


def _run_timed(batch: Batch[Any]) -> tuple[float, float, list[Any]]:
    """Run a batch: when it began, when it ended, and the outcomes."""
    began = perf_counter()
    outcomes = batch.run()
    return began, perf_counter(), outcomes
