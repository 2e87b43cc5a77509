"""Dynamic batching: inputs of several requests for one graph run through it together.

An input is a sentence's token ids, or those of a pair. It is its own key in the caches, so it is called a key here.

No request waits for a batch to fill: many whole answers take less than the milliseconds by which other servers delay
requests, and under load batches fill without waiting. Another request's piece is added if the padding that it causes
costs less than a run of its own. Work that takes less than `INLINE_IDLE_SECONDS` runs at once in the event loop.

A batch is bounded by the graph's own time, so that whoever comes next waits `PIECE_SECONDS` at most for its thread, or
as long as one sentence or pair takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from service.engine.admission import PIECE_SECONDS, RequestContext, give_way
from service.engine.graph import Padding, Rows, Shape, TextGraph
from service.engine.queue import INLINE_SECONDS, Job, Queue
from service.observe.metrics import INFERENCE

# Work of less runs in the event loop while a thread is free, and of less than `INLINE_SECONDS` while all are busy. To
# wake a thread costs a tenth of this.
INLINE_IDLE_SECONDS = 0.0002
K = TypeVar("K")


@dataclass(frozen=True)
class Cost:
    """Seconds of a run, linear: fixed + items * (per_item + per_token * tokens + per_cell * product of both lengths).

    Tokens are counted with padding, of both sentences of a pair. A transformer reads both as one row of tokens, other
    graphs compare each token of one with each of the other: `per_cell`.
    """

    fixed: float
    per_token: float
    per_item: float = 0.0
    per_cell: float = 0.0

    def of_item(self, shape: Shape) -> float:
        """Seconds of one item more of this shape."""
        seconds = self.per_item + self.per_token * sum(shape)
        return seconds + self.per_cell * prod(shape) if self.per_cell else seconds

    def of_batch(self, padding: Padding) -> float:
        """Seconds of one batch."""
        return self.fixed + padding.items * self.of_item(padding.longest)


# Before a graph is measured: large, so that nothing runs in the event loop.
INITIAL_COST = Cost(2e-3, 1e-5)


def padded(shapes: Sequence[Shape]) -> Padding:
    """The shape of a batch of at least one sentence or pair."""
    return Padding(shapes[0] if len(shapes) == 1 else tuple(map(max, zip(*shapes, strict=True))), len(shapes))


def make_batches(
    shapes: Sequence[Shape],
    cost: Callable[[Shape], float],
    max_items: Callable[[Shape], int],
    *,
    same_shape: bool = False,
) -> list[list[int]]:
    """Positions in batches, the cheapest first.

    Args:
        shapes: of all items.
        cost: of one item.
        max_items: the number of items that a batch may have whose longest has this shape, at least 1.
        same_shape: only items of one shape share a batch.
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
            fit = 0 if same_shape else max_items(longest)
        if len(batch) >= fit:
            batch, longest, fit = [], shape, max_items(shape)
            batches.append(batch)
        batch.append(i)
    return batches


class _Piece(NamedTuple, Generic[K]):
    """Keys of one request that go into one batch together."""

    indices: Sequence[int]  # of these keys in the request
    keys: Sequence[K]
    padding: Padding
    expected_seconds: float


class Batcher(Generic[K]):
    """Runs one graph, at once or by the queue."""

    def __init__(self, queue: Queue, graph: TextGraph[K]) -> None:
        """Take the graph; nothing is known of its cost."""
        self.cost = INITIAL_COST
        self.graph = graph
        self._queue = queue

    def expected_seconds(self, keys: Sequence[K]) -> float:
        """Expected seconds for these keys, in batches of their own."""
        return _seconds_of(self._pieces(keys))

    def run_blocking(self, keys: Sequence[K]) -> Rows:
        """The rows of at least one key, in batches within the budget, whatever that takes; in any thread.

        Raises:
            Exception: whatever the run raises.
        """
        return _joined([(piece.indices, self.graph.rows(piece.keys)) for piece in self._pieces(keys)], len(keys))

    async def compute(self, context: RequestContext, keys: Sequence[K]) -> Rows:
        """The rows, computed at once or in batches with other requests' keys. Cancelling drops what has not begun.

        Args:
            context: of the request.
            keys: at least one.

        Raises:
            Overloaded: too much is waiting already.
            TooSlow: it would not end in time if it were alone.
            Exception: whatever the run raises of these keys.
        """
        await give_way(len(keys))
        pieces = self._pieces(keys)
        expected = _seconds_of(pieces)
        if self._is_quick(expected):
            return self._run_inline(context, pieces, len(keys))
        admission = self._queue.admissions.admit(context, expected)
        results = await self._queue.submit(Job(pieces, admission, partial(_Batch, self), kind=self))
        return _joined([(piece.indices, rows) for piece, rows in zip(pieces, results, strict=True)], len(keys))

    def should_join(self, joined: Padding, one: Padding, other: Padding) -> bool:
        """Whether one run may take both, and costs less than two; a reproducible graph runs equal lengths only."""
        if self.graph.reproducible and one.longest != other.longest:
            return False
        apart = self.cost.of_batch(one) + self.cost.of_batch(other)
        return joined.items <= self._max_items(joined.longest) and self.cost.of_batch(joined) <= apart

    def _pieces(self, keys: Sequence[K]) -> list[_Piece[K]]:
        shapes = self.graph.shapes(keys)
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
        budget = self.graph.budget
        limit = max(1, min(budget.items, budget.size // prod(longest)))
        seconds = self.cost.of_item(longest)
        return max(1, min(limit, int(PIECE_SECONDS / seconds))) if seconds else limit

    def _is_quick(self, seconds: float) -> bool:
        """Whether to run in the event loop; the limit is higher while all threads are busy, as waiting takes longer."""
        return seconds <= INLINE_IDLE_SECONDS or (seconds <= INLINE_SECONDS and self._queue.saturated)

    def _run_inline(self, context: RequestContext, pieces: Sequence[_Piece[K]], count: int) -> Rows:
        began = perf_counter()
        graph = self.graph
        rows = _joined([(piece.indices, graph.rows(piece.keys, piece.padding.longest)) for piece in pieces], count)
        context.spent(INFERENCE, began, perf_counter())
        return rows


class _Batch(Generic[K]):
    """Pieces of several requests for one run."""

    def __init__(self, batcher: Batcher[K], piece: _Piece[K]) -> None:
        self.expected_seconds = piece.expected_seconds
        self._batcher = batcher
        self._padding = piece.padding
        self._parts = [piece.keys]

    def add(self, piece: _Piece[K], max_seconds: float) -> bool:
        """Take a piece whose padding costs less than a run of its own."""
        joined = self._padding.with_(piece.padding)
        seconds = self._batcher.cost.of_batch(joined)
        if seconds > max_seconds or not self._batcher.should_join(joined, self._padding, piece.padding):
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


def _seconds_of(pieces: Sequence[_Piece[K]]) -> float:
    return sum(piece.expected_seconds for piece in pieces)


def _joined(parts: Sequence[tuple[Sequence[int], Rows]], count: int) -> Rows:
    """The rows of all parts, each at its indices, [count, outputs]; the array itself where there is one part."""
    if len(parts) == 1:
        return parts[0][1]
    rows = np.empty((count, parts[0][1].shape[1]), np.float32)
    for indices, part in parts:
        rows[np.asarray(indices)] = part
    return rows
