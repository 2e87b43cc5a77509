"""Dynamic batching: keys of several requests for one graph go through it in one run, and come back as rows by position.

No request waits for a batch to fill: many whole answers take less than the milliseconds by which other servers delay
requests, and under load batches fill without waiting. Another request's piece is added if the padding that it causes
costs less than a run of its own. Work that takes less than `DIRECT_SECONDS` runs at once in the event loop.

A batch is bounded by the graph's own time, so that whoever comes next waits `PIECE_SECONDS` at most for its thread, or
as long as one sentence or pair takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from service.engine.admission import PIECE_SECONDS
from service.engine.context import RequestContext
from service.engine.cost import UNKNOWN, Cost, best_time
from service.engine.graph import Padding, Rows, Shape, TextGraph
from service.engine.queue import INLINE_SECONDS, MIN_THREAD_SECONDS, Job, Queue
from service.observe.metrics import INFERENCE

DIRECT_SECONDS = 0.0002  # waking a waiting request costs a tenth of it

K = TypeVar("K")


def padded(shapes: Sequence[Shape]) -> Padding:
    """The shape of a batch of at least one sentence or pair."""
    return Padding(shapes[0] if len(shapes) == 1 else tuple(map(max, zip(*shapes, strict=True))), len(shapes))


def make_batches(
    shapes: Sequence[Shape], cost: Callable[[Shape], float], most: Callable[[Shape], int], *, same_shape: bool = False
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
            fit = 0 if same_shape else most(longest)
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


class Batcher(Generic[K]):
    """Runs one graph, at once or by the queue."""

    def __init__(self, queue: Queue, graph: TextGraph[K]) -> None:
        """Take the graph; nothing is known of its cost."""
        self.cost = UNKNOWN
        self.graph = graph
        self._queue = queue

    def measure(self, keys: Sequence[K], max_tokens: int) -> None:
        """Measure the cost of a run, with tokens of these keys, at most `max_tokens` each; warms the graph up."""
        key = max(keys, key=lambda key: sum(self.graph.shape(key)))

        def seconds(items: int, shape: Shape) -> float:
            return best_time(partial(self.graph.rows, [self.graph.resized(key, shape)] * items))

        self.cost = Cost.measured(seconds, len(self.graph.shape(key)), max_tokens)
        if self.graph.has_loop:
            self.cost = replace(self.cost, fixed=max(self.cost.fixed, MIN_THREAD_SECONDS))

    def expected_seconds(self, keys: Sequence[K]) -> float:
        """Expected seconds for these keys, in batches of their own."""
        return _seconds_of(self._pieces(keys))

    def seconds_of_one_more(self, keys: Sequence[K]) -> float:
        """Expected seconds that the median one of these keys adds to a batch."""
        return sorted(self.cost.of_item(self.graph.shape(key)) for key in keys)[len(keys) // 2]

    def rows_if_quick(self, context: RequestContext, keys: Sequence[K]) -> Rows | None:
        """The rows, computed at once in the event loop; None if that would take too long.

        Raises:
            Exception: whatever the run raises.
        """
        # Two lower bounds, by the number of keys and without padding, are cheaper than batches.
        of_units = self._inline_limit() - self.cost.fixed
        if (self.cost.per_item + self.cost.per_token) * len(keys) > of_units:
            return None
        if sum(self.cost.of_item(self.graph.shape(key)) for key in keys) > of_units:
            return None
        pieces = self._pieces(keys)
        if _seconds_of(pieces) > self._inline_limit():
            return None
        return self._run_inline(context, pieces, len(keys))

    def in_this_thread(self, keys: Sequence[K]) -> Rows:
        """The rows of at least one key, in batches within the budget, whatever that takes; in any thread.

        Raises:
            Exception: whatever the run raises.
        """
        return _joined([(piece.places, self.graph.rows(piece.keys)) for piece in self._pieces(keys)], len(keys))

    async def get(self, context: RequestContext, keys: Sequence[K]) -> Rows:
        """The rows, computed at once or in batches with other requests' keys. Cancelling drops what has not begun.

        Args:
            context: of the request.
            keys: at least one.

        Raises:
            Overloaded: too much is waiting already.
            TooSlow: it would not end in time if it were alone.
            Exception: whatever the run raises of these keys.
        """
        pieces = self._pieces(keys)
        if (expected := _seconds_of(pieces)) <= self._inline_limit():
            return self._run_inline(context, pieces, len(keys))
        admission = self._queue.admissions.admit(context, expected)
        done = await self._queue.done(Job(pieces, admission, partial(_Batch, self), kind=self))
        return _joined([(piece.places, rows) for piece, rows in zip(pieces, done, strict=True)], len(keys))

    def should_join(self, joined: Padding, one: Padding, other: Padding) -> bool:
        """Whether one run costs less than two."""
        if self.graph.reproducible and one.longest != other.longest:
            return False
        apart = self.cost.of_batch(one) + self.cost.of_batch(other)
        return joined.items <= self._max_items(joined.longest) and self.cost.of_batch(joined) <= apart

    def _pieces(self, keys: Sequence[K]) -> list[_Piece[K]]:
        shapes = list(map(self.graph.shape, keys))
        together = padded(shapes)
        same_shape = self.graph.reproducible
        may_join = not same_shape or len(set(shapes)) == 1
        if may_join and len(keys) <= self._max_items(together.longest):  # the common case
            return [_Piece(range(len(keys)), keys, together, self.cost.of_batch(together))]
        pieces = []
        for batch in make_batches(shapes, self.cost.of_item, self._max_items, same_shape=same_shape):
            padding = padded([shapes[i] for i in batch])
            pieces.append(_Piece(batch, [keys[i] for i in batch], padding, self.cost.of_batch(padding)))
        return pieces

    def _max_items(self, longest: Shape) -> int:
        """How many items of this shape are in one batch at most."""
        most = self.graph.budget.most(longest)
        each = self.cost.of_item(longest)
        return max(1, min(most, int(PIECE_SECONDS / each))) if each else most

    def _inline_limit(self) -> float:
        """Of a run in the event loop, at most: more where all threads are busy, and it would wait much longer."""
        return INLINE_SECONDS if self._queue.saturated else DIRECT_SECONDS

    def _run_inline(self, context: RequestContext, pieces: Sequence[_Piece[K]], count: int) -> Rows:
        began = perf_counter()
        rows = _joined([(piece.places, self.graph.rows(piece.keys)) for piece in pieces], count)
        context.timings.spent(INFERENCE, began, perf_counter())
        return rows


class _Batch(Generic[K]):
    """Pieces of several requests for one run."""

    def __init__(self, batcher: Batcher[K], piece: _Piece[K]) -> None:
        self.expected_seconds = piece.expected_seconds
        self._batcher = batcher
        self._padding = piece.padding
        self._parts = [piece.keys]

    def add(self, piece: _Piece[K], most: float) -> bool:
        """Take a piece whose padding costs less than a run of its own."""
        joined = self._padding.with_(piece.padding)
        seconds = self._batcher.cost.of_batch(joined)
        if seconds > most or not self._batcher.should_join(joined, self._padding, piece.padding):
            return False
        self._padding, self.expected_seconds = joined, seconds
        self._parts.append(piece.keys)
        return True

    def run(self) -> list[Any]:
        """The rows of each piece; if the run raises, of each alone: one request's keys fail no other request."""
        graph = self._batcher.graph
        try:
            rows = graph.rows([key for keys in self._parts for key in keys])
        except Exception as error:  # raised where the request waits
            return [error] if len(self._parts) == 1 else [_rows_or_error(graph, keys) for keys in self._parts]
        ends = np.cumsum([len(keys) for keys in self._parts])[:-1]
        return np.split(rows, ends)


def _rows_or_error(graph: TextGraph[K], keys: Sequence[K]) -> Rows | Exception:
    try:
        return graph.rows(keys)
    except Exception as error:  # raised where the request waits
        return error


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
