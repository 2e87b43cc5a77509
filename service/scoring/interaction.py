"""Scoring with *interaction* models: one graph reads both sentences together.

The graph's output for a pair is cached; a symmetric model has one entry for both orders of the sentences.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np

from contract.manifest import EntailmentTask, ProbabilityTask, SimilarityTask, Task
from contract.scoring import CalibratedScores, raw_scores, read_similarity
from contract.tokenizer import Encoded
from service.compute.cache import Pair, VectorSpace
from service.compute.graph import PairGraph, Rows, SentenceGraph
from service.compute.vectors import Vectors
from service.scoring.scorer import Features, Scorer, ScorerParts, as_pairs, sides_of

_RANGE_TOLERANCE = 1e-4  # for rounding: how far a matrix may exceed its range


class InteractionScorer(Scorer):
    """One graph for each task, one that explains, and one whose embeddings' cosine is blended into tasks."""

    def __init__(self, parts: ScorerParts) -> None:
        super().__init__(parts)
        manifest = parts.manifest
        self.outputs = {
            name: Vectors(
                cast(PairGraph, parts.graphs[name]),
                parts.pool,
                parts.cache,
                VectorSpace(manifest.fingerprint, width, name),
            )
            for name, width in manifest.outputs().items()
        }
        if (encoder := manifest.bi_encoder) is not None:
            graph, space = parts.graphs[encoder.graph], VectorSpace(manifest.fingerprint, encoder.dim, encoder.graph)
            self.embeddings = Vectors(cast(SentenceGraph, graph), parts.pool, parts.cache, space)

    async def matrices(self, a: Encoded, b: Encoded) -> Rows:
        """The model's own explanation of a pair, as in `Scorer.matrices`."""
        pairs = [(a.ids, b.ids)]
        # About as long as a score: the graphs differ only at their end.
        expected = max(vectors.batcher.expected_seconds(pairs) for vectors in self.outputs.values())
        found = await self._pool.run(expected, partial(self._of_matrices().rows, pairs))
        return np.asarray(found[0])

    def false_claim(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> str | None:
        """See `Scorer.false_claim`; the claim is the size and range of the matrices."""
        explanation = self.manifest.explanation
        if explanation is None:
            return None
        for left, right in as_pairs(a, b):
            found = self._of_matrices().rows([(left, right)])
            expected = (1, len(explanation.matrices), len(left), len(right))
            if found.shape != expected:
                return f"{explanation.graph} gives matrices of shape {found.shape}, expected {expected}"
            for matrix, values in zip(explanation.matrices, found[0], strict=True):
                low, high = matrix.range
                if values.min() < low - _RANGE_TOLERANCE or values.max() > high + _RANGE_TOLERANCE:
                    return f"matrix {matrix.name} holds {values.min():g} to {values.max():g}, outside {low:g}..{high:g}"
        return None

    def _measured(self, pairs: Sequence[Pair]) -> Iterator[tuple[Vectors[Any], Sequence[Any]]]:
        distinct = list(dict.fromkeys(pairs))
        yield from ((vectors, distinct) for vectors in self.outputs.values())
        if self.embeddings is not None:
            yield self.embeddings, list(dict.fromkeys(chain.from_iterable(pairs)))

    def _asked(self, name: Task, pairs: Sequence[Pair]) -> Iterator[tuple[Vectors[Any], Sequence[Any]]]:
        pairs = self._ordered(pairs, name)
        yield self._outputs_of(name), pairs
        task = self.manifest.task(name)
        if isinstance(task, SimilarityTask | ProbabilityTask) and task.blend and self.embeddings is not None:
            yield self.embeddings, sides_of(pairs)  # whose cosine counts

    def _similarities(self, task: SimilarityTask | ProbabilityTask, features: Features) -> CalibratedScores:
        return read_similarity(task, raw_scores(task, *features))

    def _raw_output(self, task: EntailmentTask, features: Features) -> Rows:
        return features[0]

    def _outputs_of(self, name: Task) -> Vectors[Pair]:
        return self.outputs[self.manifest.task(name).graph or ""]

    def _of_matrices(self) -> PairGraph:
        assert self.manifest.explanation is not None, "asked only of models that have one"
        return cast(PairGraph, self.graphs[self.manifest.explanation.graph])
