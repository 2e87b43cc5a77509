"""Scoring with *interaction* models: one graph reads both sentences together.

The graph's output for a pair is cached; a symmetric model has one entry for both orders of the sentences.
"""

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from contract.manifest import ScoreTask
from contract.scoring import Similarities, entailment, raw_scores, read_similarity
from contract.tokenizer import Encoded
from service.compute.cache import Key, Pair, Space, Tiers, VectorCache
from service.compute.graph import PairGraph
from service.compute.pool import Pool
from service.compute.vectors import Vectors
from service.scoring.scorer import Scorer, as_pairs
from service.settings import CachePolicy

Floats = npt.NDArray[np.float32]

_RANGE_TOLERANCE = 1e-4  # for rounding: how far a matrix may exceed its range


class InteractionScorer(Scorer):
    """One graph for each task, and one that explains."""

    def _prepare(self, pool: Pool, cache: VectorCache) -> None:
        manifest = self.manifest
        self.outputs = {
            name: Vectors(self._open(PairGraph, name), pool, cache, Space(manifest.fingerprint, width, name))
            for name, width in manifest.outputs().items()
        }
        self._of_matrices = self._open(PairGraph, manifest.explanation.graph) if manifest.explanation else None

    async def _similarity(
        self, pairs: Sequence[Pair], name: ScoreTask, *, cached: bool
    ) -> tuple[Similarities, Collection[Key]]:
        task = self.manifest.score_task(name)
        assert task.graph is not None, "the manifest's own rule for interaction models"
        ordered = self._ordered(list(pairs), name)
        rows, computed = await self.outputs[task.graph].get(ordered, cached=cached)
        return read_similarity(task, raw_scores(task, rows)), computed

    async def entailment(
        self, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> tuple[list[dict[str, float]], Collection[Key]]:
        """See `Scorer.entailment`."""
        task = self._entailment_task()
        pairs = as_pairs(*self.fit(a, b))
        rows, computed = await self.outputs[task.graph].get(pairs)
        return entailment(task, rows), computed

    def were_cached(self, a: Encoded, b: Encoded, computed: Collection[Key]) -> tuple[bool, bool]:
        """See `Scorer.were_cached`; the same for both sentences, because pairs are cached as a whole."""
        (a,), (b,) = self.fit([a], [b])
        found = (a.ids, b.ids) not in computed and not (self._symmetric and (b.ids, a.ids) in computed)
        return found, found

    def similarity_now(
        self, a: Sequence[Encoded], b: Sequence[Encoded], name: ScoreTask = "similarity"
    ) -> Similarities:
        """See `Scorer.similarity_now`."""
        task = self.manifest.score_task(name)
        assert task.graph is not None, "the manifest's own rule for interaction models"
        pairs = self._ordered(as_pairs(*self.fit(a, b)), name)
        return read_similarity(task, raw_scores(task, self._rows_now(task.graph, pairs)))

    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment_now`."""
        task = self._entailment_task()
        return entailment(task, self._rows_now(task.graph, as_pairs(*self.fit(a, b))))

    async def matrices(self, a: Encoded, b: Encoded) -> Floats:
        """The model's own explanation of a pair: [matrices, tokens of a, tokens of b]. The model must have one.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        assert self._of_matrices is not None, "asked only of models that have one"
        pairs = [(a.ids, b.ids)]
        # About as long as a score: the graphs differ only at their end.
        expected = max(vectors.batcher.expected_seconds(pairs) for vectors in self.outputs.values())
        found = await self._pool.run(expected, partial(self._of_matrices.rows, pairs))
        return np.asarray(found[0])

    def false_claim(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> str | None:
        """See `Scorer.false_claim`; the claim is the size and range of the matrices."""
        explanation = self.manifest.explanation
        if explanation is None or self._of_matrices is None:
            return None
        for left, right in as_pairs(a, b):
            found = self._of_matrices.rows([(left, right)])
            expected = (1, len(explanation.matrices), len(left), len(right))
            if found.shape != expected:
                return f"{explanation.graph} gives matrices of shape {found.shape}, expected {expected}"
            for matrix, values in zip(explanation.matrices, found[0], strict=True):
                low, high = matrix.range
                if values.min() < low - _RANGE_TOLERANCE or values.max() > high + _RANGE_TOLERANCE:
                    return f"matrix {matrix.name} holds {values.min():g} to {values.max():g}, outside {low:g}..{high:g}"
        return None

    def _measure(self, a: Sequence[Encoded], b: Sequence[Encoded], policy: CachePolicy) -> tuple[Tiers, float]:
        """See `Scorer._measure`."""
        pairs = list(dict.fromkeys(as_pairs(*self.fit(a, b))))
        tiers = Tiers(memory=False, redis=False)
        for vectors in self.outputs.values():
            vectors.measure(pairs, policy, self.manifest.limits.max_tokens)
            tiers = Tiers(tiers.memory or vectors.tiers.memory, tiers.redis or vectors.tiers.redis)
        return tiers, max(vectors.batcher.expected_seconds(pairs) for vectors in self.outputs.values())

    def _rows_now(self, graph: str, pairs: Sequence[Pair]) -> Floats:
        """The graph's output for n pairs, each computed once."""
        place = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
        return self.outputs[graph].batcher.in_this_thread(list(place))[[place[pair] for pair in pairs]]
