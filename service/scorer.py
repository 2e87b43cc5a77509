"""Texts in, calibrated answers out, for the two families of model; nothing here knows a paper.

A *siamese* model embeds each sentence alone, so its embeddings are cached and each distinct sentence of a
request is encoded once. An *interaction* model reads both sentences together, and has nothing to cache. What an
answer does not depend on: the other sentences of its batch, and whether the cache knew it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from time import perf_counter

import numpy as np
import numpy.typing as npt

from contract.manifest import EntailmentTask, Manifest, SimilarityTask
from contract.padding import pad
from contract.scoring import (
    Array,
    Embeddings,
    Run,
    Similarities,
    compare,
    encode,
    entailment,
    raw_scores,
    read_similarity,
    similarity,
)
from contract.tokenizer import Encoded, Tokenizer
from service.cache import Embedding, EmbeddingCache, Ids, Space
from service.errors import EmptyText, InferenceFailed
from service.telemetry import ModelTelemetry
from service.workers import Workers

BATCH_TOKENS = 4096  # padded tokens in one graph run: keeps a run's memory at some megabytes

# What reading a character costs, about; only decides where it happens (see service/workers.py).
_ASCII_SECONDS, _UNICODE_SECONDS = 6e-8, 1e-6
_FEW_CHARS = 1000  # read at once, and worth remembering


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
        self._tokenise = partial(tokenizer.encode, max_tokens=manifest.limits.max_tokens)
        self._tokenise_again = lru_cache(texts_kept)(self._tokenise)
        self._runs = {name: self._watched(name, run) for name, run in runs.items()}
        self._telemetry = telemetry
        self._workers = workers
        # Expected times, until `measure` knows better: large, so that nothing runs in the event loop by mistake.
        self.seconds_per_token = 1e-3
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
            sentences = self.tokenise(texts)
        else:
            expected = sum(len(text) * (_ASCII_SECONDS if text.isascii() else _UNICODE_SECONDS) for text in texts)
            sentences = await self._workers.run(expected, partial(self.tokenise, texts))
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

    @abstractmethod
    async def similarity(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """Score n pairs. The model must have the task.

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
    def measure(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> None:
        """Learn what a padded token and a pair cost here, on n >= 1 pairs; warms the graphs as well."""

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
        self._encoder = self._runs[manifest.encoder]
        self._space = Space(manifest.fingerprint, manifest.dim)
        self._cache = cache

    async def embed(self, sentences: Sequence[Encoded]) -> Embeddings:
        """Sentences -> [n, dim].

        Raises:
            InferenceFailed: the encoder raised, or gave a number that is not finite.
        """
        return _join(await self._embeddings(sentences), sentences)

    async def similarity(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """See `Scorer.similarity`."""
        rows = await self._embeddings(chain(a, b))
        return await self._workers.run(
            len(a) * self.seconds_per_pair, lambda: self._compare_similarity(_join(rows, a), _join(rows, b))
        )

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

    def measure(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> None:
        """See `Scorer.measure`."""
        ids = [sentence.ids for sentence in chain(a, b)]
        self.seconds_per_token = _best_time(lambda: encode(self._encoder, ids)) / _padded(map(len, ids))
        rows = self._embeddings_now(a, b)
        work = [
            partial(task, *rows)
            for task, has_it in (
                (self._compare_similarity, self.manifest.similarity),
                (self._compare_entailment, self.manifest.entailment),
            )
            if has_it is not None
        ]
        self.seconds_per_pair = max(map(_best_time, work)) / len(a)

    def _compare_similarity(self, a: Embeddings, b: Embeddings) -> Similarities:
        task = self._similarity_task()
        return similarity(task, self._runs[task.graph] if task.graph else None, a, b)

    def _compare_entailment(self, a: Embeddings, b: Embeddings) -> list[dict[str, float]]:
        task = self._entailment_task()
        return entailment(task, compare(self._runs[task.graph], a, b))

    async def _embeddings(self, sentences: Iterator[Encoded] | Sequence[Encoded]) -> dict[Ids, Embedding]:
        """Each distinct sentence's embedding: from the cache, or from the encoder, once."""
        wanted = dict.fromkeys([sentence.ids for sentence in sentences])
        found = await self._cache.get_many(self._space, wanted)
        if len(found) < len(wanted):
            missing = [ids for ids in wanted if ids not in found]
            batches = batched_by_cost([len(ids) for ids in missing])
            expected = self.seconds_per_token * sum(_padded(len(missing[i]) for i in batch) for batch in batches)
            work = [partial(self._encode, [missing[i] for i in batch]) for batch in batches]
            for new in await self._workers.run_all(expected, work):
                found |= new
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


class InteractionScorer(Scorer):
    """One graph that reads both sentences."""

    async def similarity(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """See `Scorer.similarity`."""
        task = self._similarity_task()
        assert task.graph is not None, "the manifest's own rule for interaction models"
        return read_similarity(task, raw_scores(task, await self._raw_output(task.graph, a, b)))

    async def entailment(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment`."""
        task = self._entailment_task()
        return entailment(task, await self._raw_output(task.graph, a, b))

    def similarity_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> Similarities:
        """See `Scorer.similarity_now`."""
        task = self._similarity_task()
        assert task.graph is not None, "the manifest's own rule for interaction models"
        return read_similarity(task, raw_scores(task, self._run_pairs(task.graph, a, b)))

    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """See `Scorer.entailment_now`."""
        task = self._entailment_task()
        return entailment(task, self._run_pairs(task.graph, a, b))

    def measure(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> None:
        """See `Scorer.measure`."""
        work = [partial(self._run_pairs, graph, a, b) for graph in self.manifest.graphs]
        self.seconds_per_token = max(map(_best_time, work)) / _padded(_pair_lengths(a, b))

    async def _raw_output(self, graph: str, a: Sequence[Encoded], b: Sequence[Encoded]) -> npt.NDArray[np.float32]:
        """The graph's output [n, outputs], each pair's row in its place."""
        lengths = _pair_lengths(a, b)
        batches = batched_by_cost(lengths)
        expected = self.seconds_per_token * sum(_padded(lengths[i] for i in batch) for batch in batches)
        work = [partial(self._run_pairs, graph, [a[i] for i in batch], [b[i] for i in batch]) for batch in batches]
        outputs = await self._workers.run_all(expected, work)
        in_order = np.argsort(list(chain.from_iterable(batches)))
        return np.asarray(np.concatenate(outputs)[in_order])

    def _run_pairs(self, graph: str, a: Sequence[Encoded], b: Sequence[Encoded]) -> npt.NDArray[np.float32]:
        ids_a, lengths_a = pad([sentence.ids for sentence in a])
        ids_b, lengths_b = pad([sentence.ids for sentence in b])
        return self._runs[graph](
            {"input_ids_a": ids_a, "lengths_a": lengths_a, "input_ids_b": ids_b, "lengths_b": lengths_b}
        )


def batched_by_cost(lengths: Sequence[int], budget: int = BATCH_TOKENS) -> list[list[int]]:
    """Positions, shortest first, in batches whose padded cost (longest x count) stays within the budget.

    One sentence longer than the budget makes a batch alone.
    """
    if sum(lengths) <= budget and max(lengths) * len(lengths) <= budget:  # the common case
        return [list(range(len(lengths)))]
    batches: list[list[int]] = [[]]
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches[-1] and lengths[i] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(i)
    return batches


def _pair_lengths(a: Sequence[Encoded], b: Sequence[Encoded]) -> list[int]:
    return [len(left.ids) + len(right.ids) for left, right in zip(a, b, strict=True)]


def _padded(lengths: Iterator[int] | Sequence[int]) -> int:
    count = longest = 0
    for length in lengths:
        count += 1
        longest = max(longest, length)
    return count * longest


def _join(rows: Mapping[Ids, Embedding], sentences: Sequence[Encoded]) -> Embeddings:
    if len(sentences) == 1:
        return rows[sentences[0].ids]
    return np.concatenate([rows[sentence.ids] for sentence in sentences])


def _best_time(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few tries: the first ones warm up."""
    times = []
    for _ in range(3):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)
