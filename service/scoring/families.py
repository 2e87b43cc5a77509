"""The two families of models: to add one, add its scorer here and its name in `core/manifest.py`.

*Siamese* models embed each sentence alone, and two embeddings are compared. Of *interaction* models one graph reads
both sentences together. Its output for a pair is cached; a symmetric model has one entry for both orders.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar, cast

import numpy as np

from core.labels import classification, classify, entailment, entailment_by_head
from core.manifest import Family, Manifest
from core.scoring import Embeddings, pair_scores, similarity
from core.sequences import Ids, Pair
from core.tokenizer import Encoded
from service.engine.admission import RequestContext
from service.engine.cache import Vectors
from service.engine.graph import Graph, PairGraph, Rows, SentenceGraph
from service.engine.queue import MIN_THREAD_SECONDS
from service.engine.vector_codec import VectorSpace
from service.scoring.scorer import MEASURED_PAIRS, Capability, Scorer
from service.scoring.tokenising import ScorerParts


class SiameseScorer(Scorer):
    """An encoder, and a comparison of embeddings or head graphs."""

    extra_capabilities: ClassVar[tuple[Capability, ...]] = ("embedding",)
    embeddings: Vectors[Ids]

    def __init__(self, parts: ScorerParts) -> None:
        super().__init__(parts)
        manifest, of_tokens = parts.manifest, parts.manifest.token_embeddings
        self._encoder = cast(SentenceGraph, parts.graphs[manifest.encoder or ""])
        self._token_graph = None if of_tokens is None else cast(SentenceGraph, parts.graphs[of_tokens])
        space = _space(manifest, self._encoder, manifest.encoder or "", manifest.dim or 0)
        self.embeddings = Vectors(self._encoder, parts.queue, parts.cache, space)
        self.inputs = dict.fromkeys(manifest.tasks, (self.embeddings,))
        self.scores_of = {}
        if (task := manifest.similarity) is not None:
            self.scores_of = {"similarity": partial(similarity, task, self.graphs[task.graph] if task.graph else None)}
        if manifest.entailment is not None:
            head = self.graphs[manifest.entailment.graph]
            self.labels_of = partial(entailment_by_head, manifest.entailment, head)

    async def embed(self, context: RequestContext, sentences: Sequence[Encoded]) -> Embeddings:
        """Embeddings of n sentences, as in `Scorer.embed`."""
        return await self.embeddings.get(context, [sentence.ids for sentence in sentences])

    def embed_at_once(self, sentences: Sequence[Ids]) -> Embeddings:
        """Token ids of n sentences -> [n, dim], at once, in this thread and without caches."""
        return self.embeddings.at_once(sentences)

    async def embed_tokens(self, context: RequestContext, sentence: Encoded) -> Embeddings:
        """See `Scorer.embed_tokens`; the TOKENS graph's output, or of an additive model the tokens' own embeddings."""
        if self._token_graph is not None:
            expected = self.embeddings.batcher.expected_seconds([sentence.ids])
            expected = max(expected, MIN_THREAD_SECONDS if self._token_graph.has_loop else 0.0)
            vectors: Embeddings = (
                await self._queue.run(context, expected, partial(self._token_graph.rows, [sentence.ids]))
            )[0]
            return vectors
        return await self.embeddings.get(context, [(i,) for i in sentence.ids], cached=False)

    async def classify(self, context: RequestContext, sentences: Sequence[Encoded]) -> list[dict[str, float]]:
        """Probabilities of the model's own labels, as in `Scorer.classify`."""
        embeddings = await self.embed(context, sentences)
        work = partial(self._label_embeddings, embeddings)
        return await self._queue.run(context, self._comparison_seconds(len(sentences)), work)

    def answers(self, a: str, b: str) -> dict[str, float]:
        """See `Scorer.answers`; with the labels of each sentence."""
        found = super().answers(a, b)
        if self.manifest.classification is not None:
            sentences = self.prompted([a, b])
            labels = self._label_embeddings(self.embed_at_once([sentence.ids for sentence in sentences]))
            for side, of_side in zip("ab", labels, strict=True):
                found |= {f"{label} of {side}": value for label, value in of_side.items()}
        return found

    def _sample_inputs(self, pairs: Sequence[Pair]) -> Iterator[tuple[Vectors[Any], Sequence[Any]]]:
        yield self.embeddings, list(dict.fromkeys(chain.from_iterable(pairs)))

    def _comparisons(self, pairs: Sequence[Pair]) -> Iterator[Callable[[], object]]:
        yield from super()._comparisons(pairs)
        if self.manifest.classification is not None:
            yield partial(self._label_embeddings, np.repeat(self.embed_at_once([pairs[0][0]]), MEASURED_PAIRS, axis=0))

    def _label_embeddings(self, embeddings: Embeddings) -> list[dict[str, float]]:
        task = self.manifest.classification
        assert task is not None, "the registry lets no model be asked what it cannot do"
        return classification(task, classify(self.graphs[task.graph], embeddings))


class InteractionScorer(Scorer):
    """One graph for each task, one that explains, and one whose embeddings' cosine is blended into tasks."""

    def __init__(self, parts: ScorerParts) -> None:
        super().__init__(parts)
        manifest = parts.manifest
        self.outputs = {
            name: Vectors(
                cast(PairGraph, parts.graphs[name]),
                parts.queue,
                parts.cache,
                _space(manifest, parts.graphs[name], name, width, name),
            )
            for name, width in manifest.outputs().items()
        }
        if (encoder := manifest.bi_encoder) is not None:
            graph = parts.graphs[encoder.graph]
            space = _space(manifest, graph, encoder.graph, encoder.dim, encoder.graph)
            self.embeddings = Vectors(cast(SentenceGraph, graph), parts.queue, parts.cache, space)
        blended = {name for name, task in manifest.score_tasks.items() if task.blend}  # with the cosine of embeddings
        self.inputs = {
            name: [self.outputs[manifest.task(name).graph or ""], *([self.embeddings] if name in blended else ())]
            for name in manifest.tasks
        }
        self.scores_of = {name: partial(pair_scores, task) for name, task in manifest.score_tasks.items()}
        if manifest.entailment is not None:
            self.labels_of = partial(entailment, manifest.entailment)

    async def matrices(self, context: RequestContext, a: Encoded, b: Encoded) -> Rows:
        """The model's own explanation of a pair, as in `Scorer.matrices`."""
        pairs = [(a.ids, b.ids)]
        # About as long as a score: the graphs differ only at their end.
        expected = max(vectors.batcher.expected_seconds(pairs) for vectors in self.outputs.values())
        graph = self._explanation_graph()
        expected = max(expected, MIN_THREAD_SECONDS if graph.has_loop else 0.0)
        found = await self._queue.run(context, expected, partial(graph.rows, pairs))
        return np.asarray(found[0])

    def _sample_inputs(self, pairs: Sequence[Pair]) -> Iterator[tuple[Vectors[Any], Sequence[Any]]]:
        distinct = list(dict.fromkeys(pairs))
        yield from ((vectors, distinct) for vectors in self.outputs.values())
        if self.embeddings is not None:
            yield self.embeddings, list(dict.fromkeys(chain.from_iterable(pairs)))

    def _explanation_graph(self) -> PairGraph:
        assert self.manifest.explanation is not None, "asked only of models that have one"
        return cast(PairGraph, self.graphs[self.manifest.explanation.graph])


def _space(manifest: Manifest, graph: Graph, name: str, dim: int, space: str = "") -> VectorSpace:
    """Where a graph's vectors are kept. What a GPU opens in its place has other last digits, and its own space."""
    instead = manifest.on_cuda.get(name) if graph.has_cuda else None
    return VectorSpace(manifest.fingerprint, dim, instead or space)


FAMILIES: Mapping[Family, type[Scorer]] = {"siamese": SiameseScorer, "interaction": InteractionScorer}
