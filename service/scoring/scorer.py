"""Scorers: texts in, calibrated answers out. This is what both families of models share.

A scorer composes the graphs of its model. An answer does not depend on the other sentences of its batch or on the
caches.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np

from core.manifest import Manifest, ScoreTask, Task
from core.scoring import CalibratedScores, Embeddings
from core.sequences import Ids, Pair
from core.subwords import fit_together
from core.tokenizer import Encoded
from service.engine.admission import RequestContext
from service.engine.cache import CacheTiers, LruCache, Vectors, score_bytes
from service.engine.graph import Rows
from service.engine.measuring import best_time, measure
from service.engine.queue import MIN_THREAD_SECONDS
from service.scoring.tokenising import CachedTokenizer, ScorerParts
from service.settings import CachePolicy

_MAX_CACHED_PAIRS = 256  # larger requests do not use the score cache: they would displace the others' scores
MEASURED_PAIRS = 128  # so that what a comparison costs whatever it holds does not count for each pair
_SAMPLE, _SAMPLE_CHARS = 16, 4000  # items of a request, by which all are judged: a millisecond
_INCAPABLE = "the registry lets no model be asked what it cannot do"

Capability = Task | Literal["embedding", "explanation"]
Features = tuple[Rows, ...]  # what graphs made of n pairs, [n, ...] each, or [1, ...] where it is the same for all
AuxScores = tuple[float, float] | None  # what a graph gives for relevance and for paraphrase


class ScoredPairs(NamedTuple):
    """Answers for n pairs."""

    raw: list[float]
    rating: list[float] | None
    score: list[float]


class ScoreEntry(NamedTuple):
    """The score of one pair in the cache, as it is answered."""

    raw: float
    rating: float | None
    score: float


class Scorer(CachedTokenizer, ABC):
    """One opened model. Its family says how graphs answer the tasks of pairs, and what models can do beside them."""

    # What all models of the family can do, beside their tasks.
    extra_capabilities: ClassVar[tuple[Capability, ...]] = ()
    embeddings: Vectors[Ids] | None = None  # of sentences, where the model makes some
    # How tasks are answered, as the family says: the vectors that each asks of pairs, and their rows -> answers.
    inputs: Mapping[Task, Sequence[Vectors[Any]]]
    scores_of: Mapping[ScoreTask, Callable[..., CalibratedScores]]
    labels_of: Callable[..., list[dict[str, float]]]  # of entailment, where the model has it

    def __init__(self, parts: ScorerParts) -> None:
        """Join a model's parts."""
        super().__init__(parts)
        manifest = parts.manifest
        self.id = manifest.id
        self.rating_scale = manifest.similarity.label_scale if manifest.similarity else None
        self.ranking_task = manifest.ranking_task
        self.graphs = parts.graphs
        self._symmetric = frozenset(name for name, task in manifest.score_tasks.items() if task.symmetric)
        self._scores: dict[ScoreTask, LruCache[Pair, ScoreEntry]] = {
            name: parts.cache.memory.lru(score_bytes, parts.cache.score_counts) for name in manifest.score_tasks
        }
        heads = (graph for name, graph in parts.graphs.items() if manifest.graph_kinds[name] in ("head", "classifier"))
        self._min_comparison_seconds = MIN_THREAD_SECONDS if any(graph.has_loop for graph in heads) else 0.0
        # Before `measure`: large, so that nothing runs in the event loop.
        self.seconds_per_pair = 1e-3  # of a comparison
        self.seconds_per_new_pair = 0.0  # with nothing of it cached

    @classmethod
    def capabilities(cls, manifest: Manifest) -> tuple[Capability, ...]:
        """What a model of this family can do; what is explained is its similarity."""
        explained: tuple[Capability, ...] = () if manifest.similarity is None else ("explanation",)
        return (*manifest.tasks, *cls.extra_capabilities, *explained)

    async def similarity(
        self,
        context: RequestContext,
        a: Sequence[Encoded],
        b: Sequence[Encoded],
        name: ScoreTask = "similarity",
        *,
        cached: bool = True,
    ) -> ScoredPairs:
        """Score n pairs. The model must have the task. A text is as like itself as can be, whatever the model says.

        Args:
            context: of the request.
            a: n sentences.
            b: their partners.
            name: the task.
            cached: whether to read and fill the caches; false for sentences that no client sends.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        pairs = as_pairs(*self.fit(a, b))
        if name in self._scores and cached and len(pairs) <= _MAX_CACHED_PAIRS:
            found = await self._cached_scores(context, name, self._ordered(pairs, name))
        else:
            found = await self._compute_scores(context, name, pairs, cached=cached)
        if name != "relevance":  # a question does not answer itself
            for i in (i for i, (x, y) in enumerate(zip(a, b, strict=True)) if _is_same(x, y)):
                found.score[i] = 1.0
                if found.rating is not None and self.rating_scale is not None:
                    found.rating[i] = float(self.rating_scale[1])
        if cached:
            self._telemetry.scored(found.score)
        return found

    async def _compute_scores(
        self, context: RequestContext, name: ScoreTask, pairs: Sequence[Pair], *, cached: bool = True
    ) -> ScoredPairs:
        features = await self._features(context, name, pairs, cached=cached)
        work = partial(self.scores_of[name], *features)
        answer = await self._queue.run(context, self._comparison_seconds(len(pairs)), work)
        ratings = None if answer.rating is None else answer.rating.tolist()
        return ScoredPairs(answer.raw_score.tolist(), ratings, answer.score.tolist())

    async def _cached_scores(self, context: RequestContext, name: ScoreTask, pairs: Sequence[Pair]) -> ScoredPairs:
        """Scores from the cache; the missing ones are computed and added."""
        cache = self._scores[name]
        scores = cache.get_many(pairs)
        if places := [i for i, score in enumerate(scores) if score is None]:
            # By position: a pair that a request repeats is compared twice, which costs less than finding it.
            new = [pairs[i] for i in places]
            answer = await self._compute_scores(context, name, new)
            fresh = list(map(ScoreEntry, answer.raw, answer.rating or repeat(None), answer.score))
            for i, score in zip(places, fresh, strict=True):
                scores[i] = score
            cache.keep(zip(new, fresh, strict=True))
        raw, ratings, calibrated = zip(*cast(list[ScoreEntry], scores), strict=True)
        rated = None if ratings[0] is None else list(ratings)  # all have one, or none
        return ScoredPairs(list(raw), rated, list(calibrated))

    def seconds_of(self, name: Task | None, *sides: Sequence[str]) -> float:
        """Expected seconds of n new pairs for a task, or without one of n texts to embed: a sample, and all lengths."""
        most = self._max_chars
        sizes = [sum(min(len(text), most) for text in item) for item in zip(*sides, strict=True)]
        step = -(-len(sizes) // max(1, min(_SAMPLE, _SAMPLE_CHARS * len(sizes) // max(1, sum(sizes)))))
        texts = [[text[:most] for text in side[::step]] for side in sides]
        found = {text: self.encode_or_fail([text])[0] for text in dict.fromkeys(chain.from_iterable(texts))}
        read = [[found[text] if found[text].ids else found[text]._replace(ids=(0,)) for text in side] for side in texts]
        asked: list[tuple[Vectors[Any], Sequence[Any]]]
        if name is not None:
            asked = self._keys(name, as_pairs(*self.fit(*read)))
        else:
            assert self.embeddings is not None, _INCAPABLE
            asked = [(self.embeddings, [each.ids for each in read[0]])]
        return _seconds_of(asked) * sum(sizes) / max(1, sum(sizes[::step]))

    def fit(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> tuple[Sequence[Encoded], Sequence[Encoded]]:
        """n pairs as the model reads them: where it limits both texts together, the longer one is cut.

        Answers are of pairs fitted, whoever asks; who tells which text was cut fits them before. Fitted ones stay so.
        """
        limit = self.manifest.limits.max_pair_tokens
        if limit is None or all(len(x.ids) + len(y.ids) <= limit for x, y in zip(a, b, strict=True)):
            return a, b
        fits = [fit_together(len(x.ids), len(y.ids), limit) for x, y in zip(a, b, strict=True)]
        left = [x.cut(n) for x, (n, _) in zip(a, fits, strict=True)]
        sides = zip(left, a, b, fits, strict=True)
        return left, [cut if x is y else y.cut(n) for cut, x, y, (_, n) in sides]

    async def entailment(
        self, context: RequestContext, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> list[dict[str, float]]:
        """Label n pairs of premise and hypothesis. The model must have the task.

        Returns:
            The probability of each label for each pair.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        answers, _ = await self._label_pairs(context, a, b)
        return answers

    async def entailment_or_neutral(
        self, context: RequestContext, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> list[dict[str, float]]:
        """As `entailment`, but a text entails itself, nothing else a text without words, and it no other text."""
        answers = await self.entailment(context, a, b)
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            labels = list(answers[i])
            if _is_same(x, y):
                answers[i] = {name: float(name == "entailment") for name in labels}
            elif not (self.has_word(x) and self.has_word(y)):
                nothing = "neutral" if "neutral" in labels else next(name for name in labels if name != "entailment")
                answers[i] = {name: float(name == nothing) for name in labels}
        return answers

    async def read_claims(
        self, context: RequestContext, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> tuple[list[dict[str, float]], list[AuxScores]]:
        """Label n pairs of passage and claim, and what else the graph of entailment says of them.

        Returns:
            As `entailment`; and of each pair the graph's own outputs for relevance and paraphrase, without what a task
            blends with them, or None of a model whose graph gives not both.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        answers, features = await self._label_pairs(context, a, b)
        columns = self._aux_columns()
        if columns is None:
            return answers, [None] * len(answers)
        return answers, [(float(row[columns[0]]), float(row[columns[1]])) for row in features[0]]

    async def _label_pairs(
        self, context: RequestContext, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> tuple[list[dict[str, float]], Features]:
        """The probabilities of n pairs, and all outputs of the graph that they are made of."""
        features = await self._features(context, "entailment", as_pairs(*self.fit(a, b)))
        work = partial(self.labels_of, *features)
        return await self._queue.run(context, self._comparison_seconds(len(a)), work), features

    def _comparison_seconds(self, count: int) -> float:
        """Expected seconds of what follows the vectors of so many pairs or texts."""
        return max(self._min_comparison_seconds, count * self.seconds_per_pair)

    def _aux_columns(self) -> tuple[int, int] | None:
        """The columns of relevance and paraphrase in the graph of entailment, if each is one there."""
        entailment, found = self.manifest.entailment, []
        for task in (self.manifest.relevance, self.manifest.paraphrase):
            if task is None or entailment is None or task.graph != entailment.graph or task.columns is None:
                return None
            start, stop = task.columns
            if stop - start != 1:
                return None
            found.append(start)
        return found[0], found[1]

    def similarity_at_once(
        self, a: Sequence[Encoded], b: Sequence[Encoded], name: ScoreTask = "similarity"
    ) -> CalibratedScores:
        """The same at once, in this thread and without caches: for golden pairs, health checks and columns of files."""
        return self.scores_of[name](*self._features_at_once(name, as_pairs(*self.fit(a, b))))

    def entailment_at_once(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """The same for entailment."""
        return self.labels_of(*self._features_at_once("entailment", as_pairs(*self.fit(a, b))))

    async def embed(self, context: RequestContext, sentences: Sequence[Encoded]) -> Embeddings:
        """Sentences -> [n, dim]; of models that embed. Raises as `similarity`."""
        raise NotImplementedError(_INCAPABLE)

    async def embed_tokens(self, context: RequestContext, sentence: Encoded) -> Embeddings:
        """The vectors whose mean is the embedding, [tokens, dim]; of models whose embedding is one."""
        raise NotImplementedError(_INCAPABLE)

    async def classify(self, context: RequestContext, sentences: Sequence[Encoded]) -> list[dict[str, float]]:
        """The probability of each label of the model's own for n sentences; of models with classification.

        Raises as `similarity`.
        """
        raise NotImplementedError(_INCAPABLE)

    async def matrices(self, context: RequestContext, a: Encoded, b: Encoded) -> Rows:
        """The model's own explanation of a pair, [matrices, tokens of a, tokens of b]; of models that have one."""
        raise NotImplementedError(_INCAPABLE)

    def answers(self, a: str, b: str) -> dict[str, float]:
        """All answers for a golden pair, at once and without caches; named as `GoldenPair.answers`.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
        """
        left, right = self.prompted([a]), self.prompted([b])
        found: dict[str, float] = {}
        for name in self.scores_of:
            answer = self.similarity_at_once(left, right, name)
            if name == "similarity":
                found |= {"raw_score": float(answer.raw_score[0]), "score": float(answer.score[0])}
            else:
                found[name] = float(answer.score[0])
        if self.manifest.entailment is not None:
            found |= self.entailment_at_once(left, right)[0]
        return found

    def measure(self, a: Sequence[str], b: Sequence[str], policy: CachePolicy) -> CacheTiers:
        """Measure expected times on n >= 1 pairs, and choose the cache tiers; warms the graphs up."""
        if policy == "off" or not self._memory.max_bytes:
            self._scores = {}
        texts = [*a, *b]
        chars = max(sum(map(self.weight_of, texts)), 1)
        pairs = as_pairs(*self.fit(self.encode(a), self.encode(b)))
        measured = list(self._sample_inputs(pairs))
        limits = self.manifest.limits
        max_tokens = min(
            limits.max_tokens, (limits.max_pair_tokens or 2 * limits.max_tokens) // 2
        )  # of each of two texts
        for vectors, keys in measured:
            measure(vectors, keys, policy, max_tokens)
        tiers = [vectors.tiers for vectors, _ in measured]
        self.seconds_per_pair = max(map(best_time, self._comparisons(pairs[:1]))) / MEASURED_PAIRS
        together = max if self.manifest.bi_encoder is None else sum  # a task asks one of the graphs, or a blend's two
        of_graphs = together([vectors.batcher.expected_seconds(keys) for vectors, keys in measured])
        seconds = of_graphs + len(pairs) * self.seconds_per_pair
        self.seconds_per_new_pair = seconds / len(pairs)
        self._cost.tokenising = best_time(lambda: self.encode(texts)) / chars
        self._cost.scoring = seconds / sum(len(x) + len(y) for x, y in pairs)
        remote = next((each.remote for each in tiers if each.remote), "")  # there is one, of all graphs
        return CacheTiers(any(each.memory for each in tiers), remote)

    def _comparisons(self, pairs: Sequence[Pair]) -> Iterator[Callable[[], object]]:
        """The work of `MEASURED_PAIRS` pairs after their graphs of texts: of one pair, repeated."""
        for name, scores in self.scores_of.items():
            yield partial(scores, *self._repeated(name, pairs))
        if self.manifest.entailment is not None:
            yield partial(self.labels_of, *self._repeated("entailment", pairs))

    def _repeated(self, name: Task, pairs: Sequence[Pair]) -> Features:
        return tuple(np.repeat(side, MEASURED_PAIRS, axis=0) for side in self._features_at_once(name, pairs))

    @abstractmethod
    def _sample_inputs(self, pairs: Sequence[Pair]) -> Iterator[tuple[Vectors[Any], Sequence[Any]]]:
        """The vectors that answers are made of, and what n pairs need of each."""

    async def _features(
        self, context: RequestContext, name: Task, pairs: Sequence[Pair], *, cached: bool = True
    ) -> Features:
        """What a task needs of n pairs."""
        asked = self._keys(name, pairs)
        found: list[tuple[Vectors[Any], Rows]] = []
        # The embeddings of a blend first, which are known more often: with them all is let in, or nothing.
        for i in reversed(range(len(asked))):
            vectors, keys = asked[i]
            later = _seconds_of(asked[:i])
            own = _seconds_of([asked[i]]) if later else 1.0
            with context.part(max(1e-3, own / (own + later))):
                found.insert(0, (vectors, await vectors.get(context, keys, cached=cached)))
        return self._split_sides(found, len(pairs))

    def _features_at_once(self, name: Task, pairs: Sequence[Pair]) -> Features:
        """The same at once, in this thread and without caches."""
        found = [(each, each.at_once(keys)) for each, keys in self._keys(name, pairs)]
        return self._split_sides(found, len(pairs))

    def _keys(self, name: Task, pairs: Sequence[Pair]) -> list[tuple[Vectors[Any], Sequence[Any]]]:
        """The vectors that a task asks of n pairs, each with what it asks."""
        asked: list[tuple[Vectors[Any], Sequence[Any]]] = []
        for each in self.inputs[name]:
            asked.append((each, sides_of(pairs) if each is self.embeddings else self._ordered(pairs, name)))
        return asked

    def _split_sides(self, found: Sequence[tuple[Vectors[Any], Rows]], count: int) -> Features:
        sides = ((rows[:-count], rows[-count:]) if each is self.embeddings else (rows,) for each, rows in found)
        return tuple(chain.from_iterable(sides))

    def _ordered(self, pairs: Sequence[Pair], name: Task) -> Sequence[Pair]:
        """The pairs; the shorter sentence first if the task is symmetric."""
        if name in self._symmetric:
            return [(y, x) if (len(y), y) < (len(x), x) else (x, y) for x, y in pairs]
        return pairs


def _seconds_of(asked: Sequence[tuple[Vectors[Any], Sequence[Any]]]) -> float:
    """Expected seconds of vectors, nothing of them cached."""
    return sum(vectors.batcher.expected_seconds(keys) for vectors, keys in asked)


def _is_same(a: Encoded, b: Encoded) -> bool:
    """Whether two texts are one: a text that was tokenised once is one object; words not known may share their ids."""
    return a is b or (a.ids == b.ids and not a.unknown and not a.truncated)


def sides_of(pairs: Sequence[Pair]) -> list[Ids]:
    """The sentences to embed: those of a, or just one if a is the same in all pairs; then those of b."""
    a = [a for a, _ in pairs]  # compared by identity, as a query is one object: to hash all of its ids takes longer
    return [*(a[:1] if len(set(map(id, a))) == 1 else a), *(b for _, b in pairs)]


def as_pairs(a: Sequence[Encoded], b: Sequence[Encoded]) -> list[Pair]:
    """The token ids of n pairs."""
    return [(x.ids, y.ids) for x, y in zip(a, b, strict=True)]
