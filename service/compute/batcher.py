"""Dynamic batching: keys of several requests for one graph go through it in one run, and come back as rows by position.

No request waits for a batch to fill. When a thread is free, a batch is made of the requests that wait. Another
request's piece is added if the padding that it causes costs less than a run of its own. Work that takes less than
`DIRECT_SECONDS` runs at once in the event loop.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from service.compute.graph import Rows, TextGraph
from service.compute.jobs import Job, highest_ratio
from service.compute.padding import Padding, batched, padded
from service.compute.pool import INLINE_SECONDS, Batch, Pool
from service.observe.timings import INFERENCE, TIMINGS

DIRECT_SECONDS = 0.0002  # waking a waiting request costs a tenth of it
LOOKAHEAD = 256  # requests considered for one batch
_TRIES = 3
_LONG_SECONDS = 0.05

K = TypeVar("K")


@dataclass(frozen=True)
class Cost:
    """Seconds of a run: `fixed + per_unit x padded size`."""

    fixed: float
    per_unit: float

    def of(self, padding: Padding) -> float:
        """Seconds of one batch."""
        return self.fixed + self.per_unit * padding.size


# Before a graph is measured: large, so that nothing runs in the event loop.
UNKNOWN = Cost(1e-3, 1e-3)


class _Piece(NamedTuple, Generic[K]):
    """Keys of one request that go into one batch together."""

    places: Sequence[int]  # in the request
    keys: Sequence[K]
    padding: Padding


class Batcher(Generic[K]):
    """The queue of one graph; a `service.compute.pool.Source`."""

    def __init__(self, pool: Pool, graph: TextGraph[K]) -> None:
        """Start with an empty queue; `pool` runs the batches."""
        self.cost = UNKNOWN
        self._pool = pool
        self._graph = graph
        self._jobs: deque[Job[_Piece[K], int, Rows]] = deque()
        self._running = 0

    @property
    def waits(self) -> bool:
        """Whether a request waits."""
        return bool(self._jobs)

    def measure(self, keys: Sequence[K]) -> None:
        """Measure the cost of a run, from the smallest key alone and the largest batch; warms the graph up."""
        smallest = min(keys, key=lambda key: prod(self._graph.shape(key)))
        largest = max(self._pieces(keys), key=lambda piece: piece.padding.size)
        alone, together = padded([self._graph.shape(smallest)]), largest.padding
        alone_seconds, together_seconds = (
            best_time(partial(self._graph.rows, each)) for each in ([smallest], largest.keys)
        )
        more = together.size - alone.size
        if more <= 0 or together_seconds <= alone_seconds:  # the two parts of the cost cannot be separated
            self.cost = Cost(0.0, max(alone_seconds / alone.size, together_seconds / together.size))
            return
        per_unit = (together_seconds - alone_seconds) / more
        # Not below 0: a graph may pad the smallest key within itself.
        self.cost = Cost(max(0.0, alone_seconds - per_unit * alone.size), per_unit)

    def expected_seconds(self, keys: Sequence[K]) -> float:
        """Expected seconds for these keys, in batches of their own."""
        return sum(self.cost.of(piece.padding) for piece in self._pieces(keys))

    def seconds_of_one_more(self, keys: Sequence[K]) -> float:
        """Expected seconds that the median one of these keys adds to a batch."""
        return self.cost.per_unit * sorted(prod(self._graph.shape(key)) for key in keys)[len(keys) // 2]

    def now(self, keys: Sequence[K]) -> Rows | None:
        """The rows, computed at once in the event loop; None if that would take too long.

        Raises:
            Exception: whatever the run raises.
        """
        # Two lower bounds, by the number of keys and without padding, are cheaper than batches.
        most = INLINE_SECONDS if self._pool.saturated else DIRECT_SECONDS
        of_units = most - self.cost.fixed
        if self.cost.per_unit * len(keys) > of_units:
            return None
        if self.cost.per_unit * sum(prod(self._graph.shape(key)) for key in keys) > of_units:
            return None
        pieces = self._pieces(keys)
        return self._at_once(pieces, len(keys)) if self._is_direct(pieces) else None

    def in_this_thread(self, keys: Sequence[K]) -> Rows:
        """The rows of at least one key, in batches within the budget, whatever that takes; in any thread.

        Raises:
            Exception: whatever the run raises.
        """
        return _joined([(piece.places, self._graph.rows(piece.keys)) for piece in self._pieces(keys)], len(keys))

    async def get(self, keys: Sequence[K]) -> Rows:
        """The rows, computed at once or in batches with other requests' keys. Cancelling drops what has not begun.

        Args:
            keys: at least one.

        Raises:
            Overloaded: too much is waiting already.
            Exception: whatever the run raises of these keys.
        """
        pieces = self._pieces(keys)
        if self._is_direct(pieces):
            return self._at_once(pieces, len(keys))
        needs = sum(self.cost.of(piece.padding) for piece in pieces)
        with self._pool.admitted(needs) as timings:
            job: Job[_Piece[K], int, Rows] = Job(pieces, needs, timings)
            idle = not self._jobs
            self._jobs.append(job)
            if idle:
                self._pool.offer(self)
            done = await job.future
        return _joined([(piece.places, done[piece.places[0]]) for piece in pieces], len(keys))

    def take(self) -> Batch | None:
        """Fill a batch: first a piece of the request with the highest response ratio, and one of each other at most."""
        parts: list[tuple[Job[_Piece[K], int, Rows], _Piece[K]]] = []
        padding = Padding((), 0)
        passed: list[Job[_Piece[K], int, Rows]] = []
        unfinished: list[Job[_Piece[K], int, Rows]] = []
        if len(self._jobs) > 1:
            first = highest_ratio(self._jobs)
            self._jobs.remove(first)
            self._jobs.appendleft(first)
        while self._jobs and len(passed) < LOOKAHEAD:
            job = self._jobs.popleft()
            if job.future.done():  # cancelled, or another piece of it has failed
                continue
            piece = job.pieces[-1]
            joined = padding.with_(piece.padding) if parts else piece.padding
            if parts and not self._pays(joined, padding, piece.padding):
                passed.append(job)
                continue
            padding = joined
            parts.append((job, job.begin(self.cost.of(piece.padding))))
            if job.pieces:
                unfinished.append(job)
        self._jobs.extendleft(reversed(passed))
        self._jobs.extend(unfinished)
        if not parts:
            return None
        outcomes: list[Rows | Exception] = []
        self._running += 1

        def give_back(began: float, ended: float) -> None:
            self._running -= 1
            for (job, piece), outcome in zip(parts, outcomes, strict=True):
                done = outcome if isinstance(outcome, Exception) else {piece.places[0]: outcome}
                job.receive(began, ended, done)

        work = partial(self._outcomes, [piece.keys for _, piece in parts], outcomes)
        return Batch(self.cost.of(padding), work, give_back)

    def _pieces(self, keys: Sequence[K]) -> list[_Piece[K]]:
        shapes = list(map(self._graph.shape, keys))
        together = padded(shapes)
        if self._graph.budget.holds(together):  # the common case
            return [_Piece(range(len(keys)), keys, together)]
        batches = batched(shapes, self._graph.budget)
        return [_Piece(batch, [keys[i] for i in batch], padded([shapes[i] for i in batch])) for batch in batches]

    def _is_direct(self, pieces: Sequence[_Piece[K]]) -> bool:
        expected = sum(self.cost.of(piece.padding) for piece in pieces)
        if expected <= DIRECT_SECONDS:
            return True
        # Behind large work of other graphs it would wait much longer than it takes.
        return expected <= INLINE_SECONDS and not self._running and self._pool.saturated

    def _at_once(self, pieces: Sequence[_Piece[K]], count: int) -> Rows:
        began = perf_counter()
        rows = _joined([(piece.places, self._graph.rows(piece.keys)) for piece in pieces], count)
        TIMINGS.get().spent(INFERENCE, began, perf_counter())
        return rows

    def _pays(self, joined: Padding, one: Padding, other: Padding) -> bool:
        return self._graph.budget.holds(joined) and self.cost.of(joined) <= self.cost.of(one) + self.cost.of(other)

    def _outcomes(self, parts: Sequence[Sequence[K]], outcomes: "list[Rows | Exception]") -> None:
        """Run the parts in one batch; if that raises, each alone, so that one request's keys fail no other request."""
        try:
            results = self._graph.rows([key for keys in parts for key in keys])
            start = 0
            for keys in parts:
                outcomes.append(results[start : start + len(keys)])
                start += len(keys)
        except Exception as error:  # raised where the request waits
            if len(parts) == 1:
                outcomes.append(error)
                return
            outcomes.clear()
            for keys in parts:
                self._outcomes([keys], outcomes)


def _joined(parts: Sequence[tuple[Sequence[int], Rows]], count: int) -> Rows:
    """The rows of all parts, each at its places, [count, outputs]; the array itself where there is one part."""
    if len(parts) == 1:
        return parts[0][1]
    rows = np.empty((count, parts[0][1].shape[1]), np.float32)
    for places, part in parts:
        rows[np.asarray(places)] = part
    return rows


def best_time(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs, the first of which warm up; long work runs once."""
    times: list[float] = []
    while len(times) < _TRIES and sum(times) < _LONG_SECONDS:
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)
