"""Dynamic batching: keys of several requests for one graph go through it in one run, and come back as rows by position.

No request waits for a batch to fill: many whole answers take less than the milliseconds by which other servers delay
requests, and under load batches fill without waiting. When a thread is free, a batch is made of the requests that wait.
Another request's piece is added if the padding that it causes costs less than a run of its own. Work that takes less
than `DIRECT_SECONDS` runs at once in the event loop.

A batch is bounded by the graph's own time, so that whoever comes next waits `BATCH_SECONDS` at most for its thread, or
as long as one sentence or pair takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from time import perf_counter, thread_time
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from service.engine.graph import Padding, Rows, Shape, TextGraph
from service.engine.pool import IN_A_THREAD, INLINE_SECONDS, Batch, Job, JobQueue, Pool
from service.observe.metrics import INFERENCE, TIMINGS

BATCH_SECONDS = 0.05  # of a batch of several, beside what a run takes whatever it holds
DIRECT_SECONDS = 0.0002  # waking a waiting request costs a tenth of it
LOOKAHEAD = 256  # requests considered for one batch
_TRIES = 3
_LONG_SECONDS, _CHEAP_SECONDS = 0.05, 0.002
_FEW_TOKENS, _MORE_TOKENS, _SEVERAL, _MANY = 4, 64, 8, 32  # what is measured: tokens of a text, items of a batch

K = TypeVar("K")


@dataclass(frozen=True)
class Cost:
    """Seconds of a run: `fixed`, and for each item `per_item`, and more for the tokens that it is padded to.

    These are `per_token` for each, of both sentences of a pair, and `per_cell` for each pair of a token of one and a
    token of the other. What a graph computes decides which of these counts: a transformer reads both sentences as
    one row of tokens, others compare each token with each.
    """

    fixed: float
    per_token: float
    per_item: float = 0.0
    per_cell: float = 0.0

    def each(self, shape: Shape) -> float:
        """Seconds of one item more of this shape."""
        seconds = self.per_item + self.per_token * sum(shape)
        return seconds + self.per_cell * prod(shape) if self.per_cell else seconds

    def of(self, padding: Padding) -> float:
        """Seconds of one batch."""
        return self.fixed + padding.items * self.each(padding.longest)

    @classmethod
    def measured(cls, seconds: Callable[[int, Shape], float], axes: int, max_tokens: int) -> "Cost":
        """The cost that timed runs give.

        Args:
            seconds: number of items, their shape -> seconds of a run.
            axes: 1 for sentences, 2 for pairs.
            max_tokens: of a sentence.
        """
        more = min(_MORE_TOKENS, max_tokens)
        few = max(1, min(_FEW_TOKENS, more // 2))
        longer = max(1, more - few)
        alone = seconds(1, (few,) * axes)
        number, several = _SEVERAL, seconds(_SEVERAL, (few,) * axes)
        if several < _CHEAP_SECONDS:  # more of them tell it more exactly
            number, several = _MANY, seconds(_MANY, (few,) * axes)
        each = max(0.0, several - alone) / (number - 1)
        longest = seconds(1, (more,) * axes)
        per_cell = 0.0
        if axes > 1:  # how much more than twice one long sentence two of them take
            per_cell = max(0.0, longest + alone - 2 * seconds(1, (more, few))) / longer**2
        grown = longest - alone
        if longest < _CHEAP_SECONDS:
            grown = (seconds(number, (more,) * axes) - several) / number
        if axes > 1:
            grown -= per_cell * (more**2 - few**2)
        per_token = max(0.0, grown) / (axes * longer)
        of_few = per_token * axes * few + (per_cell * few**2 if axes > 1 else 0.0)
        return cls(max(0.0, alone - max(each, of_few)), per_token, max(0.0, each - of_few), per_cell)


# Before a graph is measured: large, so that nothing runs in the event loop.
UNKNOWN = Cost(2e-3, 1e-5)


def padded(shapes: Sequence[Shape]) -> Padding:
    """The shape of a batch of at least one sentence or pair."""
    return Padding(shapes[0] if len(shapes) == 1 else tuple(map(max, zip(*shapes, strict=True))), len(shapes))


def batched(
    shapes: Sequence[Shape], cost: Callable[[Shape], float], most: Callable[[Shape], int], *, alike: bool = False
) -> list[list[int]]:
    """Positions in batches, the cheapest first.

    Args:
        shapes: of all items.
        cost: of one item.
        most: the number of items that a batch may have whose longest has this shape, at least 1.
        alike: only items of one shape are in a batch.
    """
    costs = list(map(cost, shapes))
    batches: list[list[int]] = []
    batch: list[int] = []
    longest: Shape = ()
    fit = 0
    for i in sorted(range(len(shapes)), key=lambda i: (costs[i], shapes[i])):
        shape = shapes[i]
        if batch and shape != longest:
            longest = tuple(map(max, longest, shape))
            fit = 0 if alike else most(longest)
        if len(batch) >= fit:
            batch, longest, fit = [], shape, most(shape)
            batches.append(batch)
        batch.append(i)
    return batches


class _Piece(NamedTuple, Generic[K]):
    """Keys of one request that go into one batch together."""

    places: Sequence[int]  # in the request
    keys: Sequence[K]
    padding: Padding
    expected_seconds: float

    @property
    def position(self) -> int:
        """The first place in the request."""
        return self.places[0]


class Batcher(JobQueue[_Piece[K], Rows], Generic[K]):
    """The queue of one graph."""

    def __init__(self, pool: Pool, graph: TextGraph[K]) -> None:
        """Start with an empty queue; `pool` runs the batches."""
        super().__init__()
        self.cost = UNKNOWN
        self._pool = pool
        self._graph = graph
        self._running = 0

    def measure(self, keys: Sequence[K], max_tokens: int) -> None:
        """Measure the cost of a run, with tokens of these keys, at most `max_tokens` each; warms the graph up."""
        key = max(keys, key=lambda key: sum(self._graph.shape(key)))

        def seconds(items: int, shape: Shape) -> float:
            return best_time(partial(self._graph.rows, [self._graph.resized(key, shape)] * items))

        self.cost = Cost.measured(seconds, len(self._graph.shape(key)), max_tokens)
        if self._graph.repeats:
            self.cost = replace(self.cost, fixed=max(self.cost.fixed, IN_A_THREAD))

    def expected_seconds(self, keys: Sequence[K]) -> float:
        """Expected seconds for these keys, in batches of their own."""
        return _seconds_of(self._pieces(keys))

    def seconds_of_one_more(self, keys: Sequence[K]) -> float:
        """Expected seconds that the median one of these keys adds to a batch."""
        return sorted(self.cost.each(self._graph.shape(key)) for key in keys)[len(keys) // 2]

    def if_quick(self, keys: Sequence[K]) -> Rows | None:
        """The rows, computed at once in the event loop; None if that would take too long.

        Raises:
            Exception: whatever the run raises.
        """
        # Two lower bounds, by the number of keys and without padding, are cheaper than batches.
        most = INLINE_SECONDS if self._pool.saturated else DIRECT_SECONDS
        of_units = most - self.cost.fixed
        if (self.cost.per_item + self.cost.per_token) * len(keys) > of_units:
            return None
        if sum(self.cost.each(self._graph.shape(key)) for key in keys) > of_units:
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
        longest = max(piece.expected_seconds for piece in pieces)
        with self._pool.admitted(_seconds_of(pieces), longest=longest) as admission:
            done = await self._pool.done(Job(pieces, admission), self)
        return _joined([(piece.places, done[piece.position]) for piece in pieces], len(keys))

    def take(self, most: float) -> Batch | None:
        """Fill a batch: first a piece of the request whose turn it is, and one of each other at most.

        `most` is in expected seconds.
        """
        parts: list[tuple[Job[_Piece[K], Rows], _Piece[K]]] = []
        padding = Padding((), 0)
        for job in sorted(self._waiting(), key=lambda each: each.admission.turn)[:LOOKAHEAD]:
            piece = job.pieces[-1]
            joined = padding.with_(piece.padding) if parts else piece.padding
            if self.cost.of(joined) > most or (parts and not self._pays(joined, padding, piece.padding)):
                continue
            if not job.may_begin:
                continue
            padding = joined
            parts.append((job, job.pieces.pop()))
        self._jobs = [job for job in self._jobs if job.pieces]
        if not parts:
            return None
        outcomes: list[Rows | Exception] = []
        self._running += 1

        def give_back(began: float, ended: float) -> None:
            self._running -= 1
            for (job, piece), outcome in zip(parts, outcomes, strict=True):
                job.receive(piece, began, ended, outcome)

        work = partial(self._outcomes, [piece.keys for _, piece in parts], outcomes)
        return Batch(self.cost.of(padding), work, give_back)

    def _pieces(self, keys: Sequence[K]) -> list[_Piece[K]]:
        shapes = list(map(self._graph.shape, keys))
        together = padded(shapes)
        alike = self._graph.reproducible
        if len(keys) <= self._most(together.longest) and not (alike and len(set(shapes)) > 1):  # the common case
            return [_Piece(range(len(keys)), keys, together, self.cost.of(together))]
        pieces = []
        for batch in batched(shapes, self.cost.each, self._most, alike=alike):
            padding = padded([shapes[i] for i in batch])
            pieces.append(_Piece(batch, [keys[i] for i in batch], padding, self.cost.of(padding)))
        return pieces

    def _most(self, longest: Shape) -> int:
        """How many items of this shape are in one batch at most."""
        most = self._graph.budget.most(longest)
        each = self.cost.each(longest)
        return max(1, min(most, int(BATCH_SECONDS / each))) if each else most

    def _is_direct(self, pieces: Sequence[_Piece[K]]) -> bool:
        expected = _seconds_of(pieces)
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
        if self._graph.reproducible and one.longest != other.longest:
            return False
        return joined.items <= self._most(joined.longest) and self.cost.of(joined) <= self.cost.of(one) + self.cost.of(
            other
        )

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


def _seconds_of(pieces: "Sequence[_Piece[K]]") -> float:
    return sum(piece.expected_seconds for piece in pieces)


def _joined(parts: Sequence[tuple[Sequence[int], Rows]], count: int) -> Rows:
    """The rows of all parts, each at its places, [count, outputs]; the array itself where there is one part."""
    if len(parts) == 1:
        return parts[0][1]
    rows = np.empty((count, parts[0][1].shape[1]), np.float32)
    for places, part in parts:
        rows[np.asarray(places)] = part
    return rows


def best_time(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs, the first of which warm up; long work runs once.

    It is the CPU time of this thread, which other processes do not make longer; what they take of the CPUs shows in
    the pace of the pool.
    """
    times: list[float] = []
    while len(times) < _TRIES and sum(times) < _LONG_SECONDS:
        started = thread_time()
        work()
        times.append(thread_time() - started)
    return min(times)
