"""Scorers: texts in, calibrated answers out. This is what both families of models share.

An answer does not depend on the other sentences of its batch or on the caches.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, compress, repeat
from sys import getsizeof
from time import perf_counter
from typing import NamedTuple, TypeVar, cast

from contract.manifest import EntailmentTask, Manifest, Role, ScoreTask
from contract.scoring import Run, Similarities
from contract.subwords import AnyTokenizer, fit_together, has_text
from contract.tokenizer import Encoded
from service.compute.batcher import best_time
from service.compute.cache import Key, Pair, Score, ScoreCache, Tiers, VectorCache
from service.compute.graph import Graph, GraphOfModel
from service.compute.lru import ENTRY_BYTES, ID_BYTES, tuple_bytes
from service.compute.pool import Pool
from service.errors import EmptyText
from service.observe.telemetry import ModelTelemetry
from service.observe.timings import TIMINGS, TOKENISE
from service.parsing import AT
from service.schemas import Named
from service.scoring.reading import turns_of, weight_of
from service.settings import CachePolicy

# Expected cost of reading a text, in characters of ASCII:
_CHARS_OF_A_TOKEN = 8  # with white space; models read at most their limit of tokens
_BEYOND_THE_LIMIT = 0.25  # for characters after that limit, most of which are not read
_FEW_CHARS = 1000  # texts of this length together are read at once; single ones are cached
_FEW_PAIRS = 256  # larger requests do not use the score cache: they would displace the others' scores
_NOTHING: Collection[Key] = ()
G = TypeVar("G", bound=Graph)
N = TypeVar("N", bound=Named)


class Scores(NamedTuple):
    """Answers for n pairs, and the keys for which graphs ran."""

    raw: list[float]
    rating: list[float] | None
    score: list[float]
    computed: Collection[Key]


class _SecondsPerChar(NamedTuple):
    """Expected seconds for a character of new text; the defaults hold until `measure`."""

    reading: float = 2e-7
    scoring: float = 0.0


class Scorer(ABC):
    """One opened model."""

    def __init__(
        self,
        manifest: Manifest,
        tokenizer: AnyTokenizer,
        runs: Mapping[str, Run],
        telemetry: ModelTelemetry,
        pool: Pool,
        cache: VectorCache,
    ) -> None:
        """Join a model's parts; `runs` are its graphs by file name, `cache` also keeps the token ids of short texts."""
        self.manifest = manifest
        self.id = manifest.id
        self.name = manifest.id  # with the version, if the model has versions
        self.version: int | None = None
        self.rating_scale = manifest.similarity.label_scale if manifest.similarity else None
        scored = manifest.score_tasks
        self._symmetric = frozenset(name for name in scored if manifest.score_task(name).symmetric)
        self._token = tokenizer.token
        self._most_chars = manifest.limits.max_tokens * _CHARS_OF_A_TOKEN  # of a text that a graph can get
        self._tokenise = partial(tokenizer.encode_all, max_tokens=manifest.limits.max_tokens)
        self._memory = cache.memory
        self._lru = cache.memory.lru(_encoded_bytes)
        self._telemetry = telemetry
        self.graphs: dict[str, Graph] = {}  # by file name
        self._runs = runs
        self._pool = pool
        self._scores: dict[ScoreTask, ScoreCache] = {name: cache.of_scores() for name in scored}
        # Before `measure`: large, so that nothing runs in the event loop.
        self.seconds_per_pair = 1e-3
        self.seconds_per_new_pair = 0.0  # with nothing of it cached
        self._per_char = _SecondsPerChar()
        self._prepare(pool, cache)

    @abstractmethod
    def _prepare(self, pool: Pool, cache: VectorCache) -> None:
        """Open what the family needs, at the end of the constructor."""

    def _open(self, kind: type[G], name: str) -> G:
        """The graph of that file, which `graphs` has from then on."""
        of_classes = name in self.manifest.graphs_of_classes()
        graph = kind(GraphOfModel(self.id, name, self._runs[name], self._telemetry, of_classes))
        self.graphs[name] = graph
        return graph

    def number(self, version: int) -> None:
        """Set the version of the model."""
        self.version = version
        self.name = f"{self.id}{AT}{version}"

    def versioned(self, answer: N) -> N:
        """The answer, with this model's version where it has one."""
        if self.version is not None:
            answer["model_version"] = self.version
        return answer

    async def read(
        self, texts: Sequence[str], field_of: Callable[[int], str], share: float = 1.0, *, role: Role = "text"
    ) -> list[Encoded]:
        """Texts -> token ids.

        Args:
            texts: at least one.
            field_of: position in `texts` -> field of the request, for messages.
            share: share of the request's texts that these are; the rest is read by later calls.
            role: what they are for; the model's prompt of that role is put before each.

        Raises:
            EmptyText: a text without a visible character.
        """
        began = perf_counter()
        if self.manifest.prompts is not None and (prompt := self.manifest.prompts.of(role)):
            if (empty := next((i for i, text in enumerate(texts) if not has_text(text)), None)) is not None:
                raise EmptyText(field_of(empty))
            texts = [prompt + text for text in texts]
        known = self._lru.get_many(texts)
        sentences = [sentence for sentence in known if sentence is not None]
        if len(sentences) < len(texts):
            sentences = await self._read_new(texts, known, share)
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

    async def _read_new(self, texts: Sequence[str], known: Sequence[Encoded | None], share: float) -> list[Encoded]:
        new = list(dict.fromkeys(text for text, sentence in zip(texts, known, strict=True) if sentence is None))
        chars, scored = self._costs(new)
        if sum(chars) <= _FEW_CHARS:
            began = perf_counter()
            sentences = self.tokenise(new)
            TIMINGS.get().spent(TOKENISE, began, perf_counter())
        else:
            turns = [
                (seconds, partial(self.tokenise, new[part]))
                for seconds, part in turns_of(chars, self._per_char.reading)
            ]
            in_all = (sum(chars) * self._per_char.reading + scored * self._per_char.scoring) / share
            sentences = list(chain.from_iterable(await self._pool.run_all(turns, phase=TOKENISE, in_all=in_all)))
        again = compress(zip(new, sentences, strict=True), self._memory.seen.again(new))
        self._lru.keep(each for each in again if len(each[0]) <= _FEW_CHARS)
        if len(new) == len(texts):  # all of them, each once
            return sentences
        found = dict(zip(new, sentences, strict=True))
        return [sentence or found[text] for text, sentence in zip(texts, known, strict=True)]

    def tokenise(self, texts: Sequence[str]) -> list[Encoded]:
        """Texts -> token ids, at once."""
        return self._tokenise(texts)

    def _costs(self, texts: Sequence[str]) -> tuple[Sequence[float], float]:
        """`_chars` of each text, and what the graph gets of all; at once where all are short and in ASCII, as most."""
        lengths = list(map(len, texts))
        if max(lengths) <= self._most_chars and "".join(texts).isascii():
            return lengths, sum(lengths)
        return list(map(self._chars, texts)), sum(min(weight_of(text), self._most_chars) for text in texts)

    def _chars(self, text: str) -> float:
        """Expected cost of reading, in characters of ASCII within the model's limit, as `_per_char` is measured."""
        weight = weight_of(text)
        return min(weight, self._most_chars) + max(weight - self._most_chars, 0) * _BEYOND_THE_LIMIT

    def tokens(self, sentence: Encoded) -> list[str]:
        """The tokens of a sentence, for people: words, word pieces, buckets."""
        return [self._token(i) for i in sentence.ids]

    async def similarity(
        self, a: Sequence[Encoded], b: Sequence[Encoded], name: ScoreTask = "similarity", *, cached: bool = True
    ) -> Scores:
        """Score n pairs. The model must have the task.

        Args:
            a: n sentences.
            b: their partners.
            name: the task.
            cached: whether to read and fill the caches; false for sentences that no client sends.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        pairs = as_pairs(*self.fit(a, b))
        if name in self._scores and cached and len(pairs) <= _FEW_PAIRS:
            found = await self._remembered(name, self._ordered(pairs, name))
        else:
            answer, computed = await self._similarity(pairs, name, cached=cached)
            ratings = None if answer.rating is None else answer.rating.tolist()
            found = Scores(answer.raw_score.tolist(), ratings, answer.score.tolist(), computed)
        if cached:
            self._telemetry.scored(found.score)
        return found

    async def _remembered(self, name: ScoreTask, pairs: Sequence[Pair]) -> Scores:
        """Scores from the cache; the missing ones are computed and added."""
        cache, computed = self._scores[name], _NOTHING
        scores = cache.find(pairs)
        if places := [i for i, score in enumerate(scores) if score is None]:
            # By position: a pair that a request repeats is compared twice, which costs less than finding it.
            new = [pairs[i] for i in places]
            answer, computed = await self._similarity(new, name, cached=True)
            of_new: Iterable[float | None] = repeat(None) if answer.rating is None else answer.rating.tolist()
            fresh = list(map(Score, answer.raw_score.tolist(), of_new, answer.score.tolist()))
            for i, score in zip(places, fresh, strict=True):
                scores[i] = score
            cache.keep(zip(new, fresh, strict=True))
        raw, ratings, calibrated = zip(*cast(list[Score], scores), strict=True)
        rated = None if ratings[0] is None else list(ratings)  # all have one, or none
        return Scores(list(raw), rated, list(calibrated), computed)

    def fit(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> tuple[Sequence[Encoded], Sequence[Encoded]]:
        """n pairs as the model reads them: where it limits both texts together, the longer one is cut."""
        most = self.manifest.limits.max_pair_tokens
        if most is None or all(len(x.ids) + len(y.ids) <= most for x, y in zip(a, b, strict=True)):
            return a, b
        fits = [fit_together(len(x.ids), len(y.ids), most) for x, y in zip(a, b, strict=True)]
        return [_cut(x, n) for x, (n, _) in zip(a, fits, strict=True)], [
            _cut(y, n) for y, (_, n) in zip(b, fits, strict=True)
        ]

    @abstractmethod
    async def _similarity(
        self, pairs: Sequence[Pair], name: ScoreTask, *, cached: bool
    ) -> tuple[Similarities, Collection[Key]]:
        """Scores of n pairs, and the keys for which graphs ran."""

    @abstractmethod
    async def entailment(
        self, a: Sequence[Encoded], b: Sequence[Encoded]
    ) -> tuple[list[dict[str, float]], Collection[Key]]:
        """Label n pairs of premise and hypothesis. The model must have the task.

        Returns:
            The probability of each label for each pair, and the keys for which graphs ran.

        Raises:
            InferenceFailed: a graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """

    @abstractmethod
    def were_cached(self, a: Encoded, b: Encoded, computed: Collection[Key]) -> tuple[bool, bool]:
        """Whether the caches had what a pair needs of each sentence, where graphs ran for `computed`."""

    @abstractmethod
    def similarity_now(
        self, a: Sequence[Encoded], b: Sequence[Encoded], name: ScoreTask = "similarity"
    ) -> Similarities:
        """The same at once, in this thread and without caches: for golden pairs, health checks and columns of files."""

    @abstractmethod
    def entailment_now(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> list[dict[str, float]]:
        """The same for entailment."""

    @abstractmethod
    def false_claim(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> str | None:
        """A claim of the manifest, beyond scores, that n pairs disprove; None if there is none."""

    @abstractmethod
    def _measure(self, a: Sequence[Encoded], b: Sequence[Encoded], policy: CachePolicy) -> tuple[Tiers, float]:
        """Measure the graphs on n pairs: the cache tiers, and the expected seconds of these pairs in batches."""

    def measure(self, a: Sequence[str], b: Sequence[str], policy: CachePolicy) -> Tiers:
        """Measure expected times on n >= 1 pairs, and choose the cache tiers; warms the graphs up."""
        if policy == "off" or not self._memory.most:
            self._scores = {}
        texts = [*a, *b]
        chars = max(sum(map(weight_of, texts)), 1)
        tiers, seconds = self._measure(self.tokenise(a), self.tokenise(b), policy)
        self.seconds_per_new_pair = seconds / len(a)
        self._per_char = _SecondsPerChar(best_time(lambda: self.tokenise(texts)) / chars, seconds / chars)
        return tiers

    def _ordered(self, pairs: list[Pair], name: ScoreTask) -> list[Pair]:
        """The pairs; the shorter sentence first if the task is symmetric."""
        if name in self._symmetric:
            return [(y, x) if (len(y), y) < (len(x), x) else (x, y) for x, y in pairs]
        return pairs

    def _entailment_task(self) -> EntailmentTask:
        assert self.manifest.entailment is not None, "the registry lets no model be asked what it cannot do"
        return self.manifest.entailment


_EACH_TEXT_BYTES = ENTRY_BYTES + tuple_bytes(len(Encoded._fields)) + tuple_bytes(0)


def _encoded_bytes(text: str, sentence: Encoded) -> int:
    return _EACH_TEXT_BYTES + getsizeof(text) + ID_BYTES * len(sentence.ids)


def _cut(sentence: Encoded, tokens: int) -> Encoded:
    return sentence if len(sentence.ids) <= tokens else sentence._replace(ids=sentence.ids[:tokens], truncated=True)


def as_pairs(a: Sequence[Encoded], b: Sequence[Encoded]) -> list[Pair]:
    """The token ids of n pairs."""
    return [(x.ids, y.ids) for x, y in zip(a, b, strict=True)]
