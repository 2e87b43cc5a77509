"""A model's graph: its session, the padding of what it reads, the check of what it gives, and its counters."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod
from time import perf_counter
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from contract.graph import GraphKind
from contract.manifest import Manifest
from contract.scoring import Array, Run, encode
from contract.tokenizer import pad
from service.compute.cache import Ids, Pair
from service.errors import InferenceFailed
from service.observe.telemetry import ModelTelemetry

LENGTH_STEP = 4  # tokens; longer steps would pad more, shorter ones make more runs of fewer texts
_LEAST_LOGARITHM = -1e4  # stands for the logarithm of 0, and fits into float16

K = TypeVar("K")
Rows = npt.NDArray[np.float32]  # [n, outputs of the graph]: a row for each of n keys
Shape = tuple[int, ...]  # number of tokens of a sentence, or of both sentences of a pair


class Padding(NamedTuple):
    """The shape of a padded batch: every sentence as long as the longest."""

    longest: Shape
    items: int

    def with_(self, other: "Padding") -> "Padding":
        """The shape of both batches in one."""
        return Padding(tuple(map(max, self.longest, other.longest)), self.items + other.items)


class BatchBudget(NamedTuple):
    """The largest batch of one run; keeps its memory at some megabytes, and what it touches in the CPU's cache."""

    size: int  # padded: longest x count for sentences, longest of a x longest of b x count for pairs
    items: int

    def most(self, longest: Shape) -> int:
        """How many items of this shape one batch may have, at least 1."""
        return max(1, min(self.items, self.size // prod(longest)))


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


class Graph:
    """A graph that can be run; a `contract.scoring.Run`. Raises unless all its outputs are finite.

    A log-probability may be minus infinity, and is replaced by `_LEAST_LOGARITHM`.
    """

    def __init__(
        self, name: str, run: Run, manifest: Manifest, telemetry: ModelTelemetry, *, reproducible: bool = False
    ) -> None:
        """Take the graph of that file; `run` is its session, and `telemetry` counts its runs.

        `reproducible`: texts are padded by their own length alone. A row's last digits hang on how far its texts are
        padded, and on nothing else of its batch.
        """
        self.run = run
        self.reproducible = reproducible
        self._most = manifest.limits.max_tokens
        self._name = name
        self._model = manifest.id
        self._telemetry = telemetry
        self._logarithms = name in manifest.graphs_of_classes()

    def __call__(self, feeds: Mapping[str, Array]) -> Rows:
        """Run the graph: feeds by tensor name -> its one output.

        Raises:
            InferenceFailed: it raised, or gave a number that is not finite.
        """
        started = perf_counter()
        try:
            output = self.run(feeds)
        except Exception as error:  # onnxruntime's own exceptions share no public base class
            self._telemetry.failed()
            raise InferenceFailed(self._model, f"{self._name} raised {type(error).__name__}") from error
        if not np.isfinite(output).all():
            if not (self._logarithms and np.isfinite(output.max(axis=1)).all()):  # max is NaN if one is NaN
                self._telemetry.failed()
                raise InferenceFailed(self._model, f"{self._name} gave a number that is not finite")
            output = np.maximum(output, np.float32(_LEAST_LOGARITHM))
        self._telemetry.ran(self._name, len(output), perf_counter() - started)
        return output


class TextGraph(Graph, ABC, Generic[K]):
    """A graph that reads token ids; a key is those of one sentence, or of one pair."""

    budget: ClassVar[BatchBudget]  # of one run

    @abstractmethod
    def rows(self, keys: Sequence[K]) -> Rows:
        """n keys -> n rows, in any thread. A row does not depend on the other keys.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
        """

    @abstractmethod
    def shape(self, key: K) -> Shape:
        """Number of tokens of each sentence, with the padding that is its own."""

    @abstractmethod
    def resized(self, key: K, shape: Shape) -> K:
        """A key of this shape, with the tokens of another one: cut, or repeated."""

    def padded_length(self, tokens: int) -> int:
        """To which length a sentence of so many tokens is padded for its own sake."""
        return max(tokens, min(self._most, -(-tokens // LENGTH_STEP) * LENGTH_STEP)) if self.reproducible else tokens


class SentenceGraph(TextGraph[Ids]):
    """Reads one sentence: an encoder, or the vectors of its tokens."""

    # 64 sentences of 16 tokens. An averaging model takes .13 us a padded token in batches of this size, .24 in batches
    # of 4096 and .33 in those of 8192; models that compute more take the same in all of them.
    budget = BatchBudget(1024, 1024)

    def rows(self, keys: Sequence[Ids]) -> Rows:
        """One row for each sentence, as in `TextGraph.rows`."""
        return encode(self, keys, self.padded_length(max(map(len, keys))))

    def shape(self, key: Ids) -> Shape:
        """Number of tokens of the sentence."""
        return (self.padded_length(len(key)),)

    def resized(self, key: Ids, shape: Shape) -> Ids:
        """A sentence of this shape, as in `TextGraph.resized`."""
        return _resized(key, shape[0])


class PairGraph(TextGraph[Pair]):
    """Reads both sentences of a pair together: scores of a task, or matrices that explain one."""

    # Eight pairs of 32 tokens each. A graph of pairs computes many numbers for each pair of tokens, and may pad further
    # within itself: 64 pairs took pwim-sick 355 ms in batches of 32, 295 in batches of 8, and 316 in batches of 4.
    budget = BatchBudget(8 * 32 * 32, 8)

    def rows(self, keys: Sequence[Pair]) -> Rows:
        """One row for each pair, as in `TextGraph.rows`."""
        ids_a, lengths_a = pad([a for a, _ in keys], self.padded_length(max(len(a) for a, _ in keys)))
        ids_b, lengths_b = pad([b for _, b in keys], self.padded_length(max(len(b) for _, b in keys)))
        return self({"input_ids_a": ids_a, "lengths_a": lengths_a, "input_ids_b": ids_b, "lengths_b": lengths_b})

    def shape(self, key: Pair) -> Shape:
        """Numbers of tokens of both sentences."""
        return self.padded_length(len(key[0])), self.padded_length(len(key[1]))

    def resized(self, key: Pair, shape: Shape) -> Pair:
        """A pair of this shape, as in `TextGraph.resized`."""
        return _resized(key[0], shape[0]), _resized(key[1], shape[1])


def _resized(ids: Ids, length: int) -> Ids:
    return (ids * -(-length // len(ids)))[:length]


KINDS: Mapping[GraphKind, type[Graph]] = {
    "encoder": SentenceGraph,
    "tokens": SentenceGraph,
    "head": Graph,
    "classifier": Graph,
    "pair": PairGraph,
    "explanation": PairGraph,
}


def graphs_of(
    manifest: Manifest, runs: Mapping[str, Run], telemetry: ModelTelemetry, *, reproducible: bool = False
) -> dict[str, Graph]:
    """All graphs of a model by file name; `runs` are their sessions, `reproducible` as of `Graph`."""
    return {
        name: KINDS[kind](
            name, runs[name], manifest, telemetry, reproducible=reproducible and kind in ("encoder", "pair")
        )
        for name, kind in manifest.graph_kinds.items()
    }
