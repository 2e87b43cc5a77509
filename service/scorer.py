"""Texts in, calibrated answers out: what both families of model share, and the *siamese* one; nothing knows a paper.

A siamese model embeds each sentence alone, so its embeddings are cached and each distinct sentence of a request is
encoded once. The other family is in `service/interaction.py`. What an answer does not depend on: the other
sentences of its batch, and whether the cache knew it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from time import perf_counter

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
from service.batches import batched_by_cost, padded_tokens
from service.cache import Embedding, EmbeddingCache, Ids, Space
from service.errors import EmptyText, InferenceFailed
from service.telemetry import ModelTelemetry
from service.timings import CACHE, TIMINGS, TOKENISE
from service.workers import Workers

# What reading a character costs, about; only decides where it happens (see service/workers.py).
_ASCII_SECONDS, _UNICODE_SECONDS = 6e-8, 1e-6
_FEW_CHARS = 1000  # read at once, and worth remembering
_ADDITIVE_TOLERANCE = 1e-5  # of an embedding's largest component: float32 sums of many tokens stay far below


class Scorer(ABC):
    """One model, opened: what both families share."""

    def __init__(
        self,
        manifest: Manifest,
        tokenizer: Tokenizer,
        runs: Mapping[str, Run],
        telemetry: ModelTelemetry,
        workers: Workers,
        texts_kept: int,
    ) -> None:
        """Join a model's parts.

        Args:
            manifest: what the model is.
            tokenizer: text -> ids.
            runs: its graphs, by file name.
            telemetry: its series.
            workers: where its runs take place.
            texts_kept: how many short texts' ids to remember.
        """
        self.manifest = manifest
        self.id = manifest.id
        self.rating_scale = manifest.similarity.label_scale if manifest.similarity else None
        self._token = tokenizer.token
        self._tokenise = partial(tokenizer.encode, max_tokens=manifest.limits.max_tokens)
        self._tokenise_again = lru_cache(texts_kept)(self._tokenise)
        self._runs = {name: self._watched(name, run) for name, run in runs.items()}
        self._telemetry = telemetry
        self._workers = workers
        # An expected time, until `measure` knows better: large, so that nothing runs in the event loop by mistake.
        self.seconds_per_pair = 1e-3

    async def read(self, texts: Sequence[str], field_of: Callable[[int], str]) -> list[Encoded]:
        """Texts -> ids.

        Args:
            texts: at least one.
            field_of: position -> where in the request the text stands, for messages.

        Raises:
            EmptyText: a text without a visible character.
        """
        if sum(map(len, texts)) <= _FEW_CHARS:
            began = perf_counter()
            sentences = self.tokenise(texts)
            TIMINGS.get().spent(TOKENISE, began, perf_counter())
        else:
            expected = sum(len(text) * (_ASCII_SECONDS if text.isascii() else _UNICODE_SECONDS) for text in texts)
            sentences = await self._workers.run(expected, partial(self.tokenise, texts), TOKENISE)
        words = unknown = truncated = 0
        for i, sentence in enumerate(sentences):
            if not sentence.words:
                raise EmptyText(field_of(i))
            words += sentence.words
            unknown += sentence.unknown
            truncated += sentence.truncated
        self._telemetry.read(len(sentences), words, unknown, truncated)
        return sentences

    def tokenise(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts -> ids, at once."""
        return [self._tokenise_again(text) if len(text) <= _FEW_CHARS else self._tokenise(text) for text in texts]

    def tokens(self, sentence: Encoded) -> list[str]:
        """The sentence as the model reads it: words, pieces of words, buckets of unknown ones."""
        return [self._token(i) for i in sentence.ids]

    @abstractmethod
    async def similarity(self, a: Sequence[Encoded], b: Sequence[Encoded], *, cached: bool = True) -> Similarities:
        """Score n pairs. The model must have the task.

        Args:
            a: n sentences.
            b: their partners.
            cached: whether to ask a cache, and keep in it what is new; not for sentences that nobody will send.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
        """

    @abstractmethod
    async def entailment(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """Label n pairs of premise and hypothesis: the probability of each label. The model must have the task.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
        """

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
    def measure(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> None:
        """Learn what work costs here, on n >= 1 pairs; warms the graphs as well."""

    def _similarity_task(self) -> SimilarityTask:
        assert self.manifest.similarity is not None, "the registry lets no model be asked what it cannot do"
        return self.manifest.similarity

    def _entailment_task(self) -> EntailmentTask:
        assert self.manifest.entailment is not None, "the registry lets no model be asked what it cannot do"
        return self.manifest.entailment

    def _watched(self, graph: str, run: Run) -> Run:
        """The run, timed and counted, with nothing but finite numbers coming out."""

        def watched(feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
            started = perf_counter()
            try:
                output = run(feeds)
            except Exception as error:  # onnxruntime's own exceptions share no public base class
                self._telemetry.failures.inc()
                raise InferenceFailed(self.id, f"{graph} raised {type(error).__name__}") from error
            if not np.isfinite(output).all():
                self._telemetry.failures.inc()
                raise InferenceFailed(self.id, f"{graph} gave a number that is not finite")
            self._telemetry.ran(graph, len(output), perf_counter() - started)
            return output

        return watched


class SiameseScorer(Scorer):
    """Encoder, cache, comparison."""

    def __init__(
        self,
        manifest: Manifest,
        tokenizer: Tokenizer,
        runs: Mapping[str, Run],
        telemetry: ModelTelemetry,
        workers: Workers,
        cache: EmbeddingCache,
    ) -> None:
        """Join a model's parts; `cache` keeps its embeddings, and says how many texts to remember."""
        super().__init__(manifest, tokenizer, runs, telemetry, workers, texts_kept=cache.size)
        assert manifest.encoder is not None, "the manifest's own rule for siamese models"
        assert manifest.dim is not None, "the manifest's own rule for siamese models"
        self.seconds_per_token = 1e-3
        self._encoder = self._runs[manifest.encoder]
        self._space = Space(manifest.fingerprint, manifest.dim)
        self._cache = cache

    async def embed(self, sentences: Sequence[Encoded]) -> Embeddings:
        """Sentences -> [n, dim].

        Raises:
            InferenceFailed: the encoder raised, or gave a number that is not finite.
        """
        return _join(await self._embeddings(sentences), sentences)

    async def embed_tokens(self, sentence: Encoded) -> Embeddings:
        """Each token of a sentence as if it were one: [tokens, dim]; past the cache.

        Raises:
            InferenceFailed: the encoder raised, or gave a number that is not finite.
        """
        alone = [sentence._replace(ids=(i,)) for i in sentence.ids]
        return _join(await self._embeddings(alone, cached=False), alone)

    async def similarity(self, a: Sequence[Encoded], b: Sequence[Encoded], *, cached: bool = True) -> Similarities:
        """See `Scorer.similarity`."""
        rows = await self._embeddings(chain(a, b), cached=cached)
        answer = await self._workers.run(
            len(a) * self.seconds_per_pair, lambda: self._compare_similarity(_join(rows, a), _join(rows, b))
        )
        if cached:
            self._telemetry.scored(answer.score)
        return answer

    async def entailment(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment`."""
        rows = await self._embeddings(chain(a, b))
        return await self._workers.run(
            len(a) * self.seconds_per_pair, lambda: self._compare_entailment(_join(rows, a), _join(rows, b))
        )

    def similarity_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """See `Scorer.similarity_now`."""
        return self._compare_similarity(*self._embeddings_now(a, b))

    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment_now`."""
        return self._compare_entailment(*self._embeddings_now(a, b))

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

    def measure(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> None:
        """See `Scorer.measure`."""
        ids = [sentence.ids for sentence in chain(a, b)]
        self.seconds_per_token = best_time(lambda: encode(self._encoder, ids)) / padded_tokens(map(len, ids))
        rows = self._embeddings_now(a, b)
        work = [
            partial(task, *rows)
            for task, has_it in (
                (self._compare_similarity, self.manifest.similarity),
                (self._compare_entailment, self.manifest.entailment),
            )
            if has_it is not None
        ]
        self.seconds_per_pair = max(map(best_time, work)) / len(a)

    def _compare_similarity(self, a: Embeddings, b: Embeddings) -> Similarities:
        task = self._similarity_task()
        return similarity(task, self._runs[task.graph] if task.graph else None, a, b)

    def _compare_entailment(self, a: Embeddings, b: Embeddings) -> list[dict[str, float]]:
        task = self._entailment_task()
        return entailment(task, compare(self._runs[task.graph], a, b))

    async def _embeddings(self, sentences: Iterable[Encoded], *, cached: bool = True) -> dict[Ids, Embedding]:
        """Each distinct sentence's embedding: from the cache, or from the encoder, once."""
        wanted = dict.fromkeys([sentence.ids for sentence in sentences])
        found: dict[Ids, Embedding] = {}
        if cached:
            began = perf_counter()
            found = await self._cache.get_many(self._space, wanted)
            TIMINGS.get().spent(CACHE, began, perf_counter())
        if len(found) < len(wanted):
            missing = [ids for ids in wanted if ids not in found]
            batches = batched_by_cost([len(ids) for ids in missing])
            expected = self.seconds_per_token * sum(padded_tokens(len(missing[i]) for i in batch) for batch in batches)
            work = [partial(self._encode, [missing[i] for i in batch]) for batch in batches]
            for new in await self._workers.run_all(expected, work):
                found |= new
            if cached:
                self._cache.put_many(self._space, {ids: found[ids] for ids in missing})
        return found

    def _embeddings_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> tuple[Embeddings, Embeddings]:
        rows: dict[Ids, Embedding] = {}
        for sentence in chain(a, b):
            rows |= self._encode([sentence.ids])
        return _join(rows, a), _join(rows, b)

    def _encode(self, ids: Sequence[Ids]) -> dict[Ids, Embedding]:
        matrix = encode(self._encoder, ids)
        # Copies: a cached row must not keep its whole batch in memory.
        return {sentence: matrix[i : i + 1].copy() for i, sentence in enumerate(ids)}


def _join(rows: Mapping[Ids, Embedding], sentences: Sequence[Encoded]) -> Embeddings:
    if len(sentences) == 1:
        return rows[sentences[0].ids]
    return np.concatenate([rows[sentence.ids] for sentence in sentences])


def best_time(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few tries: the first ones warm up."""
    times = []
    for _ in range(3):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)
