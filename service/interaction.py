"""Texts in, calibrated answers out, for *interaction* models: one graph that reads both sentences together.

There is no embedding to cache, but a pair that stands in a request twice is scored once, and where the order of its
sentences does not matter, so is the pair turned round.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from contract.padding import pad
from contract.scoring import Similarities, entailment, raw_scores, read_similarity
from contract.tokenizer import Encoded
from service.batches import batched_by_cells, padded_cells
from service.cache import Ids
from service.scorer import Scorer, best_time

Pair = tuple[Ids, Ids]
Floats = npt.NDArray[np.float32]

_RANGE_TOLERANCE = 1e-4  # of what a matrix may be outside its range: rounding


class InteractionScorer(Scorer):
    """One graph for each task, and one that explains."""

    seconds_per_cell = 1e-3  # until `measure` knows better

    async def similarity(self, a: Sequence[Encoded], b: Sequence[Encoded], *, cached: bool = True) -> Similarities:
        """See `Scorer.similarity`."""
        task = self._similarity_task()
        assert task.graph is not None, "the manifest's own rule for interaction models"
        raw = raw_scores(task, await self._raw_output(task.graph, self._to_score(a, b)))
        answer = read_similarity(task, raw)
        if cached:
            self._telemetry.scored(answer.score)
        return answer

    async def entailment(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment`."""
        task = self._entailment_task()
        return entailment(task, await self._raw_output(task.graph, _pairs(a, b)))

    def similarity_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """See `Scorer.similarity_now`."""
        task = self._similarity_task()
        assert task.graph is not None, "the manifest's own rule for interaction models"
        return read_similarity(task, raw_scores(task, self._run_pairs(task.graph, self._to_score(a, b))))

    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment_now`."""
        task = self._entailment_task()
        return entailment(task, self._run_pairs(task.graph, _pairs(a, b)))

    async def matrices(self, a: Encoded, b: Encoded) -> Floats:
        """The model's own explanation of a pair: [matrices, tokens of a, tokens of b]. The model must have one.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
        """
        assert self.manifest.explanation is not None, "asked only of models that have one"
        graph, pairs = self.manifest.explanation.graph, [(a.ids, b.ids)]
        found = await self._workers.run(self._expected([pairs]), partial(self._run_pairs, graph, pairs))
        return np.asarray(found[0])

    def false_claim(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> str | None:
        """See `Scorer.false_claim`: are the matrices of the size and in the range that the manifest says?"""
        explanation = self.manifest.explanation
        if explanation is None:
            return None
        for left, right in _pairs(a, b):
            found = self._run_pairs(explanation.graph, [(left, right)])
            expected = (1, len(explanation.matrices), len(left), len(right))
            if found.shape != expected:
                return f"{explanation.graph} gives matrices of shape {found.shape}, expected {expected}"
            for matrix, values in zip(explanation.matrices, found[0], strict=True):
                low, high = matrix.range
                if values.min() < low - _RANGE_TOLERANCE or values.max() > high + _RANGE_TOLERANCE:
                    return f"matrix {matrix.name} holds {values.min():g} to {values.max():g}, outside {low:g}..{high:g}"
        return None

    def measure(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> None:
        """See `Scorer.measure`."""
        pairs = _pairs(a, b)
        smallest = min(pairs, key=lambda pair: padded_cells([_shape(pair)]))
        graphs = [task.graph for task in (self.manifest.similarity, self.manifest.entailment) if task is not None]
        work = [partial(self._run_pairs, graph) for graph in graphs if graph is not None]
        # A graph may pad to a size of its own, so that its cost is more of a pair's than of its cells.
        self.seconds_per_pair = max(best_time(partial(run, [smallest])) for run in work)
        cells = padded_cells(map(_shape, pairs))
        self.seconds_per_cell = max(best_time(partial(run, pairs)) for run in work) / cells

    def _to_score(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[Pair]:
        """The pairs, the shorter sentence first where the order does not move the score."""
        pairs = _pairs(a, b)
        if self._similarity_task().symmetric:
            return [(y, x) if (len(y), y) < (len(x), x) else (x, y) for x, y in pairs]
        return pairs

    async def _raw_output(self, graph: str, pairs: Sequence[Pair]) -> Floats:
        """The graph's output [n, outputs], each pair's row in its place; of equal pairs one is run."""
        distinct = list(dict.fromkeys(pairs))
        batches = [[distinct[i] for i in batch] for batch in batched_by_cells([_shape(pair) for pair in distinct])]
        work = [partial(self._run_pairs, graph, batch) for batch in batches]
        outputs = np.concatenate(await self._workers.run_all(self._expected(batches), work))
        row_of = {pair: row for row, pair in enumerate(chain.from_iterable(batches))}
        return np.asarray(outputs[[row_of[pair] for pair in pairs]])

    def _expected(self, batches: Sequence[Sequence[Pair]]) -> float:
        pairs = sum(map(len, batches))
        cells = sum(padded_cells(map(_shape, batch)) for batch in batches)
        return max(self.seconds_per_pair * pairs, self.seconds_per_cell * cells)

    def _run_pairs(self, graph: str, pairs: Sequence[Pair]) -> Floats:
        ids_a, lengths_a = pad([a for a, _ in pairs])
        ids_b, lengths_b = pad([b for _, b in pairs])
        return self._runs[graph](
            {"input_ids_a": ids_a, "lengths_a": lengths_a, "input_ids_b": ids_b, "lengths_b": lengths_b}
        )


def _pairs(a: Sequence[Encoded], b: Sequence[Encoded]) -> list[Pair]:
    return [(left.ids, right.ids) for left, right in zip(a, b, strict=True)]


def _shape(pair: Pair) -> tuple[int, int]:
    return len(pair[0]), len(pair[1])
