"""Caches of computed vectors and scores: in memory and, for vectors, optionally in Redis.

A vector is the embedding of a sentence, or an interaction model's output for a pair. Its key is the model's fingerprint
(which covers the tokenizer) and the token ids, so a cached vector is the one that the model would compute. Keys match
exactly: an approximate match could miss a "not".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from service.compute.lru import ENTRY_BYTES, ID_BYTES, MemoryBudget, tuple_bytes
from service.observe.telemetry import Telemetry
from service.settings import CachePolicy

# Redis is not used for more new keys than this at once: 1,000 take 25 ms to look up and 75 ms to write, which is over
# the time limit of Redis and would count as its failure.
REMOTE_MOST = 500
# Models that need less time for a key do not use Redis with `auto`: measurements are in docs/caching.md.
REMOTE_PAYS_SECONDS = 250e-6
# To find a vector in memory, or to add one, takes some 8 us. With `auto`, a model that computes one in less is not
# cached: averaging models take 2 to 4 us, the next fastest 30.
FINDING_SECONDS = 10e-6

Ids = tuple[int, ...]
Pair = tuple[Ids, Ids]
Key = Ids | Pair
Vector = npt.NDArray[np.float32]  # [1, dim]: rows are joined by np.concatenate
K = TypeVar("K", bound=Key)
_ARRAY_BYTES = 144  # of a numpy array beside its numbers
_FLOAT_BYTES = 24


class VectorSpace(NamedTuple):
    """The model and graph that vectors belong to."""

    fingerprint: str  # of the model
    dim: int
    graph: str = ""  # of a pair: an interaction model may have several graphs


class CacheTiers(NamedTuple):
    """The cache tiers that a model uses."""

    memory: bool
    redis: bool

    @property
    def names(self) -> list[str]:
        """The names of those in use."""
        return [name for name, used in zip(self._fields, self, strict=True) if used]


class RemoteCache(Protocol):
    """A second tier, shared between processes. It never raises: a failure is a miss."""

    async def get_many(self, space: VectorSpace, keys: Sequence[K]) -> dict[K, Vector]:
        """The vectors that it has."""

    def put_many(self, space: VectorSpace, vectors: Mapping[K, Vector]) -> None:
        """Write these in the background."""


class VectorCache:
    """The vectors of all models: an LRU cache in memory, then the remote tier."""

    def __init__(self, most_bytes: int, telemetry: Telemetry, remote: RemoteCache | None = None) -> None:
        """Start empty; `most_bytes` is for all caches of this process together, 0 keeps nothing."""
        self.memory = MemoryBudget(most_bytes)
        self.remote = remote
        self._lru = self.memory.lru(_vector_bytes)
        self._telemetry = telemetry
        self._hits, self._misses = telemetry.cache_counters("memory")

    def __len__(self) -> int:
        return len(self._lru)

    def tiers(self, policy: CachePolicy, alone: float, more: float) -> CacheTiers:
        """The tiers by a policy, for a graph that needs `alone` seconds for one key, and `more` for one more key."""
        wanted = policy in ("memory", "redis") or (policy == "auto" and more >= FINDING_SECONDS)
        memory = self.memory.most > 0 and wanted
        pays = policy == "redis" or (policy == "auto" and alone >= REMOTE_PAYS_SECONDS)
        return CacheTiers(memory, self.remote is not None and pays)

    def of_scores(self) -> "ScoreCache":
        """A cache for one model's scores, within the same budget."""
        return ScoreCache(self.memory, self._telemetry)

    def find(self, space: VectorSpace, wanted: Collection[K]) -> dict[K, Vector]:
        """The vectors that are in memory; `wanted` has each key once."""
        kept = self._lru.get_many([(space, key) for key in wanted])
        found = {key: vector for key, vector in zip(wanted, kept, strict=True) if vector is not None}
        if found:
            self._hits.inc(len(found))
        if len(found) < len(wanted):
            self._misses.inc(len(wanted) - len(found))
        return found

    async def fetch(self, space: VectorSpace, wanted: Sequence[K], tiers: CacheTiers) -> dict[K, Vector]:
        """The vectors that the remote tier has; they are added to those in memory."""
        if self.remote is None or not tiers.redis or len(wanted) > REMOTE_MOST:
            return {}
        found = await self.remote.get_many(space, wanted)
        if tiers.memory:
            self._keep(space, found)
        return found

    def keep(self, space: VectorSpace, vectors: Mapping[K, Vector], tiers: CacheTiers) -> None:
        """Keep new vectors, which must be finite and own their memory; very many only in memory."""
        if tiers.memory:
            self._keep(space, vectors)
        if self.remote is not None and tiers.redis and len(vectors) <= REMOTE_MOST:
            self.remote.put_many(space, vectors)

    def _keep(self, space: VectorSpace, vectors: Mapping[K, Vector]) -> None:
        self._lru.keep(((space, key), vector) for key, vector in vectors.items())


class ScoreEntry(NamedTuple):
    """The score of one pair, as it is answered."""

    raw: float
    rating: float | None
    score: float


class ScoreCache:
    """Scores of one model's pairs."""

    def __init__(self, memory: MemoryBudget, telemetry: Telemetry) -> None:
        """Start empty, within a budget."""
        self._lru = memory.lru(_score_bytes)
        self._hits, self._misses = telemetry.cache_counters("scores")

    def find(self, pairs: Sequence[Pair]) -> list[ScoreEntry | None]:
        """The score of each pair, or None."""
        found = self._lru.get_many(pairs)
        misses = found.count(None)
        self._hits.inc(len(found) - misses)
        self._misses.inc(misses)
        return found

    def keep(self, scores: Iterable[tuple[Pair, ScoreEntry]]) -> None:
        """Store the scores of these pairs."""
        self._lru.keep(scores)


_EACH_PAIR_BYTES = tuple_bytes(2) + 2 * tuple_bytes(0)


def _pair_bytes(pair: Pair) -> int:
    return _EACH_PAIR_BYTES + ID_BYTES * (len(pair[0]) + len(pair[1]))


def _vector_bytes(key: tuple[VectorSpace, Key], vector: Vector) -> int:
    ids = key[1]
    of_ids = _pair_bytes(ids) if isinstance(ids[0], tuple) else tuple_bytes(len(ids))
    return ENTRY_BYTES + tuple_bytes(len(key)) + of_ids + _ARRAY_BYTES + vector.nbytes


_EACH_SCORE_BYTES = (
    ENTRY_BYTES + _EACH_PAIR_BYTES + tuple_bytes(len(ScoreEntry._fields)) + len(ScoreEntry._fields) * _FLOAT_BYTES
)


def _score_bytes(pair: Pair, _: ScoreEntry) -> int:
    return _EACH_SCORE_BYTES + ID_BYTES * (len(pair[0]) + len(pair[1]))
