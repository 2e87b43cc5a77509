"""Dynamic batching: what several requests want of one graph goes through it together.

Nothing waits for company. A batch is made when a thread is free, of what has come in until then; where nothing else
runs that is at once. It is filled by padded cost: another request's piece joins where the padding it brings costs
less than a run of its own would. Work of some microseconds is not worth any of this, and is done where it stands.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

from service.batches import Budget, Padding, Shape, batched, padded
from service.timings import INFERENCE, TIMINGS, Timings
from service.workers import INLINE_SECONDS, Batch, Workers, highest_ratio

DIRECT_SECONDS = 0.0002  # to be woken again costs a tenth of it
LOOKAHEAD = 256  # requests that are looked at for one batch
_TRIES = 3

K = TypeVar("K")
R = TypeVar("R")


@dataclass(frozen=True)
class Cost:
    """Seconds of a run: `fixed + per_unit x padded size`."""

    fixed: float
    per_unit: float

    def of(self, padding: Padding) -> float:
        """Of one batch."""
        return self.fixed + self.per_unit * padding.size


# Until a graph is measured: so large that nothing runs in the event loop by mistake.
UNKNOWN = Cost(1e-3, 1e-3)


class _Piece(NamedTuple, Generic[K]):
    """What of one request goes into one batch."""

    keys: list[K]
    padding: Padding


class _Job(Generic[K, R]):
    """What one request waits for."""

    __slots__ = ("came", "future", "left", "needs", "pieces", "results", "seen", "timings")

    def __init__(self, pieces: list[_Piece[K]], needs: float, timings: Timings) -> None:
        self.future: asyncio.Future[dict[K, R]] = asyncio.get_running_loop().create_future()
        self.pieces = pieces[::-1]  # the next one last
        self.left = len(pieces)
        self.results: dict[K, R] = {}
        self.timings = timings
        self.needs = needs  # expected seconds of what is not begun
        self.came = self.seen = perf_counter()  # the latter: until when its time is accounted for

    def note(self, began: float, ended: float) -> None:
        """Account for a batch."""
        self.seen = self.timings.waited(INFERENCE, self.seen, began, ended)

    def receive(self, piece: _Piece[K], outcome: "Sequence[R] | Exception") -> None:
        """One piece is done, or has failed, and with it the request."""
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
            return
        self.results.update(zip(piece.keys, outcome, strict=True))
        self.left -= 1
        if not self.left:
            self.future.set_result(self.results)


class Batcher(Generic[K, R]):
    """One graph's work; a `service.workers.Source`."""

    def __init__(
        self,
        workers: Workers,
        run: Callable[[Sequence[K]], Sequence[R]],
        shape: Callable[[K], Shape],
        budget: Budget,
    ) -> None:
        """Stand before a graph.

        Args:
            workers: where it runs.
            run: n keys -> n results, in any thread. A result must not depend on the other keys.
            shape: of a key, as the graph sees it.
            budget: of one run.
        """
        self.cost = UNKNOWN
        self._workers = workers
        self._run = run
        self._shape = shape
        self._budget = budget
        self._jobs: deque[_Job[K, R]] = deque()
        self._running = 0

    @property
    def waits(self) -> bool:
        """Whether a request waits."""
        return bool(self._jobs)

    def measure(self, keys: Sequence[K]) -> None:
        """Learn what runs cost here, from the smallest key alone and all of them together; warms the graph as well."""
        shapes = {key: padded([self._shape(key)]) for key in keys}
        smallest = min(keys, key=lambda key: shapes[key].size)
        together = padded(map(self._shape, keys))
        alone_seconds, together_seconds = (best_time(partial(self._run, each)) for each in ([smallest], list(keys)))
        more = together.size - shapes[smallest].size
        if more <= 0 or together_seconds <= alone_seconds:  # nothing to tell the two parts from
            self.cost = Cost(0.0, max(alone_seconds / shapes[smallest].size, together_seconds / together.size))
            return
        per_unit = (together_seconds - alone_seconds) / more
        # A graph may pad within itself: then even the smallest costs what the rest do not explain.
        self.cost = Cost(max(0.0, alone_seconds - per_unit * shapes[smallest].size), per_unit)

    def expected_seconds(self, keys: Sequence[K]) -> float:
        """Of these keys, in batches of their own."""
        return sum(self.cost.of(piece.padding) for piece in self._pieces(keys))

    def now(self, keys: Sequence[K]) -> dict[K, R] | None:
        """The results at once, where they are cheap enough for the event loop; otherwise None.

        Raises:
            Exception: whatever the run raises.
        """
        # Not even without padding: then it need not be known how they would be padded.
        most = INLINE_SECONDS if self._workers.saturated else DIRECT_SECONDS
        of_units = most - self.cost.fixed
        if self.cost.per_unit * len(keys) > of_units:  # many are not even counted
            return None
        if self.cost.per_unit * sum(prod(self._shape(key)) for key in keys) > of_units:
            return None
        pieces = self._pieces(keys)
        return self._at_once(pieces) if self._is_direct(pieces) else None

    async def get(self, keys: Sequence[K]) -> dict[K, R]:
        """The results, in company or alone. Who stops waiting gives up what is not begun.

        Args:
            keys: at least one, no two alike.

        Raises:
            Overloaded: too much is waiting already.
            Exception: whatever the run raises of these keys.
        """
        pieces = self._pieces(keys)
        if self._is_direct(pieces):
            return self._at_once(pieces)
        needs = sum(self.cost.of(piece.padding) for piece in pieces)
        with self._workers.admitted(needs) as timings:
            job: _Job[K, R] = _Job(pieces, needs, timings)
            idle = not self._jobs
            self._jobs.append(job)
            if idle:
                self._workers.offer(self)
            return await job.future

    def take(self) -> Batch | None:
        """Fill a batch: the request with the highest response ratio begins, and any other gives one piece at most."""
        parts: list[tuple[_Job[K, R], _Piece[K]]] = []
        padding = Padding((), 0)
        passed: list[_Job[K, R]] = []
        unfinished: list[_Job[K, R]] = []
        if len(self._jobs) > 1:
            first = highest_ratio(self._jobs)
            self._jobs.remove(first)
            self._jobs.appendleft(first)
        while self._jobs and len(passed) < LOOKAHEAD:
            job = self._jobs.popleft()
            if job.future.done():  # its caller has left, or another piece of it has failed
                continue
            piece = job.pieces[-1]
            joined = padding.with_(piece.padding) if parts else piece.padding
            if parts and not self._pays(joined, padding, piece.padding):
                passed.append(job)
                continue
            padding = joined
            parts.append((job, job.pieces.pop()))
            job.needs -= self.cost.of(piece.padding)
            if job.pieces:
                unfinished.append(job)
        self._jobs.extendleft(reversed(passed))
        self._jobs.extend(unfinished)
        if not parts:
            return None
        outcomes: list[Sequence[R] | Exception] = []
        self._running += 1

        def done(began: float, ended: float) -> None:
            self._running -= 1
            for (job, piece), outcome in zip(parts, outcomes, strict=True):
                job.note(began, ended)
                job.receive(piece, outcome)

        work = partial(self._outcomes, [piece.keys for _, piece in parts], outcomes)
        return Batch(self.cost.of(padding), work, done)

    def _pieces(self, keys: Sequence[K]) -> list[_Piece[K]]:
        shapes = [self._shape(key) for key in keys]
        return [
            _Piece([keys[i] for i in batch], padded(shapes[i] for i in batch))
            for batch in batched(shapes, self._budget)
        ]

    def _is_direct(self, pieces: Sequence[_Piece[K]]) -> bool:
        expected = sum(self.cost.of(piece.padding) for piece in pieces)
        if expected <= DIRECT_SECONDS:
            return True
        # Behind the large work of other graphs, small work would wait long for nothing.
        return expected <= INLINE_SECONDS and not self._running and self._workers.saturated

    def _at_once(self, pieces: Sequence[_Piece[K]]) -> dict[K, R]:
        began = perf_counter()
        results: dict[K, R] = {}
        for keys, _ in pieces:
            results.update(zip(keys, self._run(keys), strict=True))
        TIMINGS.get().spent(INFERENCE, began, perf_counter())
        return results

    def _pays(self, joined: Padding, one: Padding, other: Padding) -> bool:
        return self._budget.holds(joined) and self.cost.of(joined) <= self.cost.of(one) + self.cost.of(other)

    def _outcomes(self, parts: Sequence[list[K]], outcomes: "list[Sequence[R] | Exception]") -> None:
        """Run the parts together; where that fails, each alone, so that nobody fails by another's."""
        try:
            results = self._run([key for keys in parts for key in keys])
            start = 0
            for keys in parts:
                outcomes.append(results[start : start + len(keys)])
                start += len(keys)
        except Exception as error:  # it belongs to who waits
            if len(parts) == 1:
                outcomes.append(error)
                return
            outcomes.clear()
            for keys in parts:
                self._outcomes([keys], outcomes)


def best_time(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few tries: the first ones warm up."""
    times = []
    for _ in range(_TRIES):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)
