"""Texts in, calibrated answers out: what both families of model share, and the *siamese* one; nothing knows a paper.

A siamese model embeds each sentence alone, so each distinct sentence is encoded once, and its embedding kept. The
other family is in `service/interaction.py`. What an answer does not depend on: the other sentences of its batch,
whose request they came with, and whether a cache knew it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from time import perf_counter
from typing import NamedTuple, ParamSpec, TypeVar
from weakref import WeakMethod

import numpy as np
import numpy.typing as npt

from contract.manifest import EntailmentTask, Manifest, SimilarityTask
from contract.scoring import (
    Array,
    Embeddings,
    Run,
    Similarities,
    compare,
    encode,
    entailment,
    similarity,
)
from contract.tokenizer import Encoded, Tokenizer
from service.batches import SENTENCES
from service.batching import Batcher, best_time
from service.cache import Ids, Key, Pair, Policy, Recent, Score, ScoreCache, Space, Tiers, Vector, VectorCache
from service.errors import EmptyText, InferenceFailed
from service.repository import AT
from service.telemetry import ModelTelemetry
from service.timings import TIMINGS, TOKENISE
from service.vectors import Vectors
from service.workers import Workers

_TIMES_BEYOND_ASCII = 8  # what reading a character costs, as every one is looked up for itself
_LEAST_LOGARITHM = -1e4  # of a probability: of 0 in float64, and small enough for float16
_FEW_CHARS = 1000  # read at once, and worth remembering
_TURN_SECONDS = 0.004  # of reading for one request, before others have their turns
_FEW_PAIRS = 256  # whose scores are remembered one by one; a large ranking would only wash the others out
_ADDITIVE_TOLERANCE = 1e-5  # of an embedding's largest component: float32 sums of many tokens stay far below
_NOTHING: Collection[Key] = ()
P = ParamSpec("P")
R = TypeVar("R")


class Scores(NamedTuple):
    """Answers for n pairs, and what graphs had to run for."""

    raw: list[float]
    rating: list[float] | None
    score: list[float]
    computed: Collection[Key]


class _SecondsPerChar(NamedTuple):
    """Of text that is new, until `measure` knows better; decides where it is read, and when too much of it waits."""

    reading: float = 2e-7
    scoring: float = 0.0


class Scorer(ABC):
    """One model, opened: what both families share."""

    def __init__(
        self,
        manifest: Manifest,
        tokenizer: Tokenizer,
        runs: Mapping[str, Run],
        telemetry: ModelTelemetry,
        workers: Workers,
        cache: VectorCache,
    ) -> None:
        """Join a model's parts.

        Args:
            manifest: what the model is.
            tokenizer: text -> ids.
            runs: its graphs, by file name.
            telemetry: its series.
            workers: where its runs take place.
            cache: of all models; its size says how many short texts' ids to remember, too.
        """
        self.manifest = manifest
        self.id = manifest.id
        self.name = manifest.id  # with the version, where the model has versions
        self.version: int | None = None
        self.rating_scale = manifest.similarity.label_scale if manifest.similarity else None
        self._symmetric = manifest.similarity is not None and manifest.similarity.symmetric
        self._token = tokenizer.token
        self._tokenise = partial(tokenizer.encode, max_tokens=manifest.limits.max_tokens)
        self._recent = Recent[str, Encoded](cache.size)
        self._telemetry = telemetry
        self._runs = {name: self._watched(name, run) for name, run in runs.items()}
        self._workers = workers
        self._scores: ScoreCache | None = cache.of_scores()
        # An expected time, until `measure` knows better: large, so that nothing runs in the event loop by mistake.
        self.seconds_per_pair = 1e-3
        self._per_char = _SecondsPerChar()

    def number(self, version: int) -> None:
        """Say which of the model's versions this is."""
        self.version = version
        self.name = f"{self.id}{AT}{version}"

    async def read(self, texts: Sequence[str], field_of: Callable[[int], str]) -> list[Encoded]:
        """Texts -> ids.

        Args:
            texts: at least one.
            field_of: position -> where in the request the text stands, for messages.

        Raises:
            EmptyText: a text without a visible character.
        """
        began = perf_counter()
        sentences = self._recent.find(texts)
        if sentences is None:
            sentences = await self._read_anew(texts)
        else:
            TIMINGS.get().spent(TOKENISE, began, perf_counter())
        words = unknown = truncated = 0
        for _, of_sentence, of_them_unknown, cut in sentences:
            if not of_sentence:
                raise EmptyText(field_of(next(i for i, sentence in enumerate(sentences) if not sentence.words)))
            words += of_sentence
            unknown += of_them_unknown
            truncated += cut
        self._telemetry.read(len(sentences), words, unknown, truncated)
        return sentences

    async def _read_anew(self, texts: Sequence[str]) -> list[Encoded]:
        known = self._recent.get_many(dict.fromkeys(texts))
        new = [text for text, sentence in known.items() if sentence is None]
        chars = _chars(new)
        if chars <= _FEW_CHARS:
            began = perf_counter()
            sentences = self.tokenise(new)
            TIMINGS.get().spent(TOKENISE, began, perf_counter())
        else:
            turns = [
                (_chars(part) * self._per_char.reading, partial(self.tokenise, part))
                for part in _parts(new, _TURN_SECONDS / self._per_char.reading)
            ]
            in_all = chars * sum(self._per_char)
            sentences = list(chain.from_iterable(await self._workers.run_all(turns, phase=TOKENISE, in_all=in_all)))
        read = dict(zip(new, sentences, strict=True))
        self._recent.keep({text: sentence for text, sentence in read.items() if len(text) <= _FEW_CHARS})
        return [known[text] or read[text] for text in texts]

    def tokenise(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts -> ids, at once."""
        return list(map(self._tokenise, texts))

    def tokens(self, sentence: Encoded) -> list[str]:
        """The sentence as the model reads it: words, pieces of words, buckets of unknown ones."""
        return [self._token(i) for i in sentence.ids]

    async def similarity(self, a: Sequence[Encoded], b: Sequence[Encoded], *, cached: bool = True) -> Scores:
        """Score n pairs. The model must have the task.

        Args:
            a: n sentences.
            b: their partners.
            cached: whether to ask a cache, and keep in it what is new; not for sentences that nobody will send.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        pairs = as_pairs(a, b)
        remembered = self._scores if cached and len(pairs) <= _FEW_PAIRS else None
        if remembered is not None:
            pairs = self._ordered(pairs)
            if (known := remembered.find(pairs)) is not None:
                scores = [each.score for each in known]
                self._telemetry.scored(scores)
                ratings = [each.rating for each in known if each.rating is not None]  # all of them have one, or none
                return Scores([each.raw for each in known], ratings or None, scores, _NOTHING)
        answer, computed = await self._similarity(pairs, cached=cached)
        found = Scores(
            answer.raw_score.tolist(),
            None if answer.rating is None else answer.rating.tolist(),
            answer.score.tolist(),
            computed,
        )
        if cached:
            self._telemetry.scored(found.score)
        if remembered is not None:
            remembered.keep(pairs, map(Score, found.raw, found.rating or repeat(None), found.score))
        return found

    @abstractmethod
    async def _similarity(self, pairs: Sequence[Pair], *, cached: bool) -> tuple[Similarities, Collection[Key]]:
        """Score n pairs, and say what graphs had to run for."""

    @abstractmethod
    async def entailment(
        self, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> tuple[list[dict[str, float]], Collection[Key]]:
        """Label n pairs of premise and hypothesis. The model must have the task.

        Returns:
            The probability of each label for each pair, and what graphs had to run for.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """

    @abstractmethod
    def were_cached(self, a: Encoded, b: Encoded, computed: Collection[Key]) -> tuple[bool, bool]:
        """Whether what a pair's answer needed of each sentence was kept, if graphs had to run for `computed`."""

    @abstractmethod
    def similarity_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """The same at once, in this thread and past the cache: for golden pairs and health checks."""

    @abstractmethod
    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """Likewise."""

    @abstractmethod
    def false_claim(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> str | None:
        """What the manifest says of the model beyond its scores, and n pairs disprove."""

    @abstractmethod
    def _measure(self, a: Sequence[Encoded], b: Sequence[Encoded], policy: Policy) -> tuple[Tiers, float]:
        """What `measure` does once the texts are read; the tiers, and the seconds that these pairs take in batches."""

    def measure(self, a: Sequence[str], b: Sequence[str], policy: Policy) -> Tiers:
        """Learn what work costs here, on n >= 1 pairs, and choose the cache's tiers; warms the graphs as well."""
        texts = [*a, *b]
        chars = max(_chars(texts), 1)
        tiers, seconds = self._measure(self.tokenise(a), self.tokenise(b), policy)
        self._per_char = _SecondsPerChar(best_time(lambda: self.tokenise(texts)) / chars, seconds / chars)
        return tiers

    def _ordered(self, pairs: list[Pair]) -> list[Pair]:
        """The pairs, the shorter sentence first where the order does not move the score."""
        if self._symmetric:
            return [(y, x) if (len(y), y) < (len(x), x) else (x, y) for x, y in pairs]
        return pairs

    def _similarity_task(self) -> SimilarityTask:
        assert self.manifest.similarity is not None, "the registry lets no model be asked what it cannot do"
        return self.manifest.similarity

    def _entailment_task(self) -> EntailmentTask:
        assert self.manifest.entailment is not None, "the registry lets no model be asked what it cannot do"
        return self.manifest.entailment

    def _graphs_of_classes(self) -> set[str | None]:
        """Those that give a logarithm of the probability of each class."""
        graphs: set[str | None] = set()
        if self.manifest.entailment is not None:
            graphs.add(self.manifest.entailment.graph)
        if self.manifest.similarity is not None and self.manifest.similarity.classes is not None:
            graphs.add(self.manifest.similarity.graph)
        return graphs

    def _watched(self, graph: str, run: Run) -> Run:
        """The run, timed and counted, with nothing but finite numbers coming out.

        Of probabilities a graph gives the logarithms: minus infinity where one left the range of floats, which is 0.

        It holds no reference to the scorer, which would keep both alive after the last request: what a reload replaces
        is to be freed at once.
        """
        model, telemetry = self.id, self._telemetry
        logarithms = graph in self._graphs_of_classes()

        def watched(feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
            started = perf_counter()
            try:
                output = run(feeds)
            except Exception as error:  # onnxruntime's own exceptions share no public base class
                telemetry.failures.inc()
                raise InferenceFailed(model, f"{graph} raised {type(error).__name__}") from error
            if not np.isfinite(output).all():
                if not (logarithms and np.isfinite(output.max(axis=1)).all()):  # NaN is the greatest of a row it is in
                    telemetry.failures.inc()
                    raise InferenceFailed(model, f"{graph} gave a number that is not finite")
                output = np.maximum(output, np.float32(_LEAST_LOGARITHM))
            telemetry.ran(graph, len(output), perf_counter() - started)
            return output

        return watched


def _chars(texts: Sequence[str]) -> int:
    """Characters to read, as if all were ASCII."""
    return sum(len(text) * (1 if text.isascii() else _TIMES_BEYOND_ASCII) for text in texts)


def _parts(texts: Sequence[str], chars: float) -> Iterator[list[str]]:
    """The texts in order, in lists of about so many characters."""
    part: list[str] = []
    size = 0
    for text in texts:
        part.append(text)
        size += _chars([text])
        if size >= chars:
            yield part
            part, size = [], 0
    if part:
        yield part


def as_pairs(a: Sequence[Encoded], b: Sequence[Encoded]) -> list[Pair]:
    """n sentences and their partners, by their ids."""
    return [(x.ids, y.ids) for x, y in zip(a, b, strict=True)]


def weakly(method: Callable[P, R]) -> Callable[P, R]:
    """A method for the parts of its own object, which they do not keep alive: whoever waits for its result does.

    An object in a circle of references outlives its last user until everything is collected, which makes all requests
    wait; and a scorer that a reload has replaced is large.
    """
    reference = WeakMethod(method)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        found = reference()
        if found is None:
            raise ReferenceError("nobody waits for this any more")
        return found(*args, **kwargs)

    return call


class SiameseScorer(Scorer):
    """Encoder, cache, comparison."""

    def __init__(
        self,
        manifest: Manifest,
        tokenizer: Tokenizer,
        runs: Mapping[str, Run],
        telemetry: ModelTelemetry,
        workers: Workers,
        cache: VectorCache,
    ) -> None:
        """See `Scorer`."""
        super().__init__(manifest, tokenizer, runs, telemetry, workers, cache)
        assert manifest.encoder is not None, "the manifest's own rule for siamese models"
        assert manifest.dim is not None, "the manifest's own rule for siamese models"
        self._encoder = self._runs[manifest.encoder]
        batcher = Batcher(workers, weakly(self._encode), _shape, SENTENCES)
        self.embeddings = Vectors(batcher, cache, Space(manifest.fingerprint, manifest.dim))

    async def embed(self, sentences: Sequence[Encoded]) -> tuple[Embeddings, Collection[Key]]:
        """Sentences -> [n, dim], and those that the encoder had to run for.

        Raises:
            InferenceFailed: the encoder raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        ids = [sentence.ids for sentence in sentences]
        rows, computed = await self.embeddings.get(ids)
        return _join(rows, ids), computed

    async def embed_tokens(self, sentence: Encoded) -> Embeddings:
        """Each token of a sentence as if it were one: [tokens, dim]; past the cache.

        Raises:
            InferenceFailed: the encoder raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        alone = [(i,) for i in sentence.ids]
        rows, _ = await self.embeddings.get(alone, cached=False)
        return _join(rows, alone)

    async def _similarity(self, pairs: Sequence[Pair], *, cached: bool) -> tuple[Similarities, Collection[Key]]:
        rows, computed = await self.embeddings.get(chain.from_iterable(pairs), cached=cached)
        answer = await self._workers.run(
            len(pairs) * self.seconds_per_pair, lambda: self._compare_similarity(*_sides(rows, pairs))
        )
        return answer, computed

    async def entailment(
        self, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> tuple[list[dict[str, float]], Collection[Key]]:
        """See `Scorer.entailment`."""
        pairs = as_pairs(a, b)
        rows, computed = await self.embeddings.get(chain.from_iterable(pairs))
        answer = await self._workers.run(
            len(pairs) * self.seconds_per_pair, lambda: self._compare_entailment(*_sides(rows, pairs))
        )
        return answer, computed

    def were_cached(self, a: Encoded, b: Encoded, computed: Collection[Key]) -> tuple[bool, bool]:
        """See `Scorer.were_cached`."""
        return a.ids not in computed, b.ids not in computed

    def similarity_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """See `Scorer.similarity_now`."""
        return self._compare_similarity(*self._embeddings_now(as_pairs(a, b)))

    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment_now`."""
        return self._compare_entailment(*self._embeddings_now(as_pairs(a, b)))

    def false_claim(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> str | None:
        """See `Scorer.false_claim`: is an embedding the mean of its tokens' where it should be?"""
        if not self.manifest.additive:
            return None
        for sentence in chain(a, b):
            whole = encode(self._encoder, [sentence.ids])[0]
            alone = encode(self._encoder, [(i,) for i in sentence.ids])
            gap = float(np.abs(whole - alone.mean(axis=0, dtype=np.float64)).max())
            if not gap <= _ADDITIVE_TOLERANCE * float(np.abs(alone).max()):
                return f"additive, but an embedding is not the mean of those of its tokens: off by {gap:.1e}"
        return None

    def _measure(self, a: Sequence[Encoded], b: Sequence[Encoded], policy: Policy) -> tuple[Tiers, float]:
        """See `Scorer._measure`."""
        pairs = as_pairs(a, b)
        sentences = list(dict.fromkeys(chain.from_iterable(pairs)))
        self.embeddings.measure(sentences, policy)
        rows = self._embeddings_now(pairs)
        work = [
            partial(task, *rows)
            for task, has_it in (
                (self._compare_similarity, self.manifest.similarity),
                (self._compare_entailment, self.manifest.entailment),
            )
            if has_it is not None
        ]
        self.seconds_per_pair = max(map(best_time, work)) / len(a)
        if not self.embeddings.tiers.memory:
            self._scores = None
        seconds = self.embeddings.batcher.expected_seconds(sentences) + len(pairs) * self.seconds_per_pair
        return self.embeddings.tiers, seconds

    def _compare_similarity(self, a: Embeddings, b: Embeddings) -> Similarities:
        task = self._similarity_task()
        return similarity(task, self._runs[task.graph] if task.graph else None, a, b)

    def _compare_entailment(self, a: Embeddings, b: Embeddings) -> list[dict[str, float]]:
        task = self._entailment_task()
        return entailment(task, compare(self._runs[task.graph], a, b))

    def _embeddings_now(self, pairs: Sequence[Pair]) -> tuple[Embeddings, Embeddings]:
        rows: dict[Ids, Vector] = {}
        for ids in chain.from_iterable(pairs):
            rows[ids] = encode(self._encoder, [ids])
        return _sides(rows, pairs)

    def _encode(self, sentences: Sequence[Ids]) -> list[Vector]:
        matrix = encode(self._encoder, sentences)
        # Copies: a cached row must not keep its whole batch in memory.
        return [matrix[i : i + 1].copy() for i in range(len(sentences))]


def _shape(ids: Ids) -> tuple[int]:
    return (len(ids),)


def _sides(rows: Mapping[Ids, Vector], pairs: Sequence[Pair]) -> tuple[Embeddings, Embeddings]:
    """Both sides' embeddings [n, dim]; of a query with many candidates [1, dim] for a."""
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    return _join(rows, a[:1] if len(set(map(id, a))) == 1 else a), _join(rows, b)


def _join(rows: Mapping[Ids, Vector], ids: Sequence[Ids]) -> Embeddings:
    if len(ids) == 1:
        return rows[ids[0]]
    return np.concatenate([rows[each] for each in ids])
