"""Scoring with *siamese* models: each sentence is embedded alone, and two embeddings are compared."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import chain

import numpy as np

from contract.manifest import ScoreTask, SimilarityTask
from contract.scoring import Embeddings, Similarities, classification, classify, compare, entailment, similarity
from contract.tokenizer import Encoded
from service.compute.batcher import best_time
from service.compute.cache import Ids, Key, Pair, Space, Tiers, VectorCache
from service.compute.graph import Graph, SentenceGraph
from service.compute.pool import Pool
from service.compute.vectors import Vectors
from service.scoring.scorer import Scorer, as_pairs
from service.settings import CachePolicy

_MEASURED_PAIRS = 128
_ADDITIVE_TOLERANCE = 1e-5  # relative to the largest component; rounding in float32 is far smaller


class SiameseScorer(Scorer):
    """An encoder, and a comparison of embeddings or head graphs."""

    def _prepare(self, pool: Pool, cache: VectorCache) -> None:
        manifest = self.manifest
        assert manifest.encoder is not None, "the manifest's own rule for siamese models"
        assert manifest.dim is not None, "the manifest's own rule for siamese models"
        self._encoder = self._open(SentenceGraph, manifest.encoder)
        self._of_tokens = self._open(SentenceGraph, manifest.token_embeddings) if manifest.token_embeddings else None
        for name in manifest.outputs():
            self._open(Graph, name)
        self.embeddings = Vectors(self._encoder, pool, cache, Space(manifest.fingerprint, manifest.dim))

    async def embed(self, sentences: Sequence[Encoded]) -> tuple[Embeddings, Collection[Key]]:
        """Sentences -> [n, dim], and the keys for which the encoder ran.

        Raises:
            InferenceFailed: the encoder raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        return await self.embeddings.get([sentence.ids for sentence in sentences])

    async def classify(self, sentences: Sequence[Encoded]) -> tuple[list[dict[str, float]], Collection[Key]]:
        """Label n sentences. The model must have the task.

        Returns:
            The probability of each label for each sentence, and what the encoder had to run for.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        embeddings, computed = await self.embed(sentences)
        answer = await self._pool.run(len(sentences) * self.seconds_per_pair, partial(self._label, embeddings))
        return answer, computed

    async def embed_tokens(self, sentence: Encoded) -> Embeddings:
        """The vectors whose mean is the embedding, one for each token: [tokens, dim]; does not use the cache.

        For an additive model these are the tokens' own embeddings, for others the output of the TOKENS graph.

        Raises:
            InferenceFailed: the encoder raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        if self._of_tokens is not None:
            expected = self.embeddings.batcher.expected_seconds([sentence.ids])
            vectors: Embeddings = (await self._pool.run(expected, partial(self._of_tokens.rows, [sentence.ids])))[0]
            return vectors
        rows, _ = await self.embeddings.get([(i,) for i in sentence.ids], cached=False)
        return rows

    async def _similarity(
        self, pairs: Sequence[Pair], name: ScoreTask, *, cached: bool
    ) -> tuple[Similarities, Collection[Key]]:
        a, b, computed = await self._sides(pairs, cached=cached)
        answer = await self._pool.run(len(pairs) * self.seconds_per_pair, partial(self._compare_similarity, a, b))
        return answer, computed

    async def entailment(
        self, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> tuple[list[dict[str, float]], Collection[Key]]:
        """See `Scorer.entailment`."""
        left, right, computed = await self._sides(as_pairs(a, b))
        answer = await self._pool.run(len(a) * self.seconds_per_pair, partial(self._compare_entailment, left, right))
        return answer, computed

    async def _sides(
        self, pairs: Sequence[Pair], *, cached: bool = True
    ) -> tuple[Embeddings, Embeddings, Collection[Key]]:
        """Embeddings of both sides, [n, dim] each, [1, dim] for a if it is the same in all pairs; what was computed."""
        ids = _distinct(pairs)
        rows, computed = await self.embeddings.get(ids, cached=cached)
        return rows[: -len(pairs)], rows[-len(pairs) :], computed

    def were_cached(self, a: Encoded, b: Encoded, computed: Collection[Key]) -> tuple[bool, bool]:
        """See `Scorer.were_cached`."""
        return a.ids not in computed, b.ids not in computed

    def similarity_now(
        self, a: Sequence[Encoded], b: Sequence[Encoded], name: ScoreTask = "similarity"
    ) -> Similarities:
        """See `Scorer.similarity_now`."""
        return self._compare_similarity(*self._embeddings_now(as_pairs(a, b)))

    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment_now`."""
        return self._compare_entailment(*self._embeddings_now(as_pairs(a, b)))

    def classification_now(self, sentences: Sequence[Encoded]) -> list[dict[str, float]]:
        """`classify` at once, in this thread and past the cache."""
        return self._label(self.embed_now([sentence.ids for sentence in sentences]))

    def embed_now(self, sentences: Sequence[Ids]) -> Embeddings:
        """`embed` at once, in this thread and past the cache; each sentence is computed once."""
        place = {ids: i for i, ids in enumerate(dict.fromkeys(sentences))}
        return self.embeddings.batcher.in_this_thread(list(place))[[place[ids] for ids in sentences]]

    def false_claim(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> str | None:
        """See `Scorer.false_claim`; the claim is that an embedding is the mean of vectors of its tokens."""
        graph, claim = self._encoder, "additive"
        if self._of_tokens is not None:
            graph, claim = self._of_tokens, f"it has {self.manifest.token_embeddings}"
        elif not self.manifest.additive:
            return None
        for ids in chain.from_iterable(as_pairs(a, b)):
            whole = self._encoder.rows([ids])[0]
            alone = graph.rows([(i,) for i in ids]) if graph is self._encoder else graph.rows([ids])[0]
            gap = float(np.abs(whole - alone.mean(axis=0, dtype=np.float64)).max())
            if not gap <= _ADDITIVE_TOLERANCE * float(np.abs(alone).max()):
                return f"{claim}, but an embedding is not the mean of those of its tokens: off by {gap:.1e}"
        return None

    def _measure(self, a: Sequence[Encoded], b: Sequence[Encoded], policy: CachePolicy) -> tuple[Tiers, float]:
        """See `Scorer._measure`."""
        pairs = as_pairs(a, b)
        sentences = list(dict.fromkeys(chain.from_iterable(pairs)))
        self.embeddings.measure(sentences, policy, self.manifest.limits.max_tokens)
        # Repeated, so that what a comparison costs whatever it holds does not count for each pair of a large request.
        times = -(-_MEASURED_PAIRS // len(pairs))
        rows = [np.tile(side, (times, 1)) for side in self._embeddings_now(pairs)]
        work: list[Callable[[], object]] = [
            partial(task, *rows)
            for task, has_it in (
                (self._compare_similarity, self.manifest.similarity),
                (self._compare_entailment, self.manifest.entailment),
            )
            if has_it is not None
        ]
        if self.manifest.classification is not None:
            work.append(partial(self._label, rows[0]))
        self.seconds_per_pair = max(map(best_time, work)) / (times * len(pairs))
        seconds = self.embeddings.batcher.expected_seconds(sentences) + len(pairs) * self.seconds_per_pair
        return self.embeddings.tiers, seconds

    def _compare_similarity(self, a: Embeddings, b: Embeddings) -> Similarities:
        task = self.manifest.score_task("similarity")
        assert isinstance(task, SimilarityTask)
        return similarity(task, self.graphs[task.graph] if task.graph else None, a, b)

    def _compare_entailment(self, a: Embeddings, b: Embeddings) -> list[dict[str, float]]:
        task = self._entailment_task()
        return entailment(task, compare(self.graphs[task.graph], a, b))

    def _label(self, embeddings: Embeddings) -> list[dict[str, float]]:
        task = self.manifest.classification
        assert task is not None, "the registry lets no model be asked what it cannot do"
        return classification(task, classify(self.graphs[task.graph], embeddings))

    def _embeddings_now(self, pairs: Sequence[Pair]) -> tuple[Embeddings, Embeddings]:
        rows = self.embed_now(_distinct(pairs))
        return rows[: -len(pairs)], rows[-len(pairs) :]


def _distinct(pairs: Sequence[Pair]) -> list[Ids]:
    """The sentences to embed: those of a, or the one that is a in all pairs, and then those of b."""
    a = [a for a, _ in pairs]
    return [*(a[:1] if len(set(map(id, a))) == 1 else a), *(b for _, b in pairs)]
