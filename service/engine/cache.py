"""Caches of computed vectors and scores: in memory and, for vectors, optionally in a backend such as Redis.

A vector is the embedding of a sentence, or an interaction model's output for a pair. Its key is the model's fingerprint
(which covers the tokenizer) and the token ids, so a cached vector is the one that the model would compute. Keys match
exactly: an approximate match could miss a "not".

Caches in memory drop what was used longest ago, and share one budget in bytes. The size of an entry is computed from
its key and value, by `sys.getsizeof`'s arithmetic for CPython on 64 bits; that takes less than a microsecond. When all
caches together exceed the budget, the largest one drops its oldest entries, so many new entries of one kind displace
few of the others.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt
from prometheus_client import Counter

from service.engine.breaker import Backend
from service.observe.telemetry import Telemetry
from service.settings import CachePolicy

# Larger entries are not kept: hashing their keys costs about what the cache saves, and some hundreds of them would
# displace all others. A sentence of 512 tokens with an embedding of 768 numbers fits.
LARGEST_ENTRY_BYTES = 8192
ENTRY_BYTES = 296  # of the ordered dict: its node, its share of both tables, half of them empty; value with size
TUPLE_BYTES = 56  # without elements: header, length, its part in garbage collection
ID_BYTES = 8  # a reference: the tokenizer holds one object for each token id
_FLAGS, _MAX_KEYS = 1 << 20, 100_000  # flags, of a byte each, and the number of keys after which all are reset

H = TypeVar("H")
V = TypeVar("V")
CacheCounts = tuple[Counter, Counter]  # hits, misses


def tuple_bytes(length: int) -> int:
    """Size of a tuple, without its elements, which exist anyway."""
    return TUPLE_BYTES + ID_BYTES * length


class MemoryBudget:
    """A budget in bytes for several caches; a cache that is no longer referenced does not count."""

    def __init__(self, max_bytes: int) -> None:
        """Start without caches; `max_bytes` is in bytes, 0 keeps nothing."""
        self.max_bytes = max_bytes
        self.seen = Doorkeeper()
        self._caches: list[ref[LruCache[Any, Any]]] = []

    @property
    def held(self) -> int:
        """Bytes that the caches hold."""
        return sum(cache.held for cache in self._live_caches())

    def lru(self, size: Callable[[H, V], int], counts: CacheCounts | None = None) -> "LruCache[H, V]":
        """A cache within this budget; `size` computes the bytes of a key and its value, always the same."""
        cache = LruCache(self, size, counts)
        self._caches = [each for each in self._caches if each() is not None]
        self._caches.append(ref(cache))
        return cache

    def make_room(self) -> None:
        """Drop entries until the caches fit the budget."""
        while (excess := self.held - self.max_bytes) > 0:
            max(self._live_caches(), key=lambda cache: cache.held).evict(excess)

    def _live_caches(self) -> "list[LruCache[Any, Any]]":
        return [cache for each in self._caches if (cache := each()) is not None]


class Doorkeeper:
    """An approximate set of the keys seen so far; at most one new key in ten is taken for a known one.

    A value that costs less to compute than to add and evict is added when its key comes a second time (the doorkeeper
    of TinyLFU, Einziger, Friedman & Manes 2017).
    """

    def __init__(self) -> None:
        """Start with an empty set of keys."""
        self._flags = bytearray(_FLAGS)
        self._keys_left = _MAX_KEYS

    def seen_before(self, keys: Sequence[Hashable]) -> list[int]:
        """1 for each key that an earlier call had, else 0."""
        if self._keys_left < len(keys):
            self._flags, self._keys_left = bytearray(_FLAGS), _MAX_KEYS
        self._keys_left -= len(keys)
        flags, places = self._flags, [hash(key) % _FLAGS for key in keys]
        found = [flags[place] for place in places]
        for place in places:
            flags[place] = 1
        return found


class LruCache(Generic[H, V]):
    """One cache; made by `MemoryBudget.lru`."""

    def __init__(self, memory: MemoryBudget, size: Callable[[H, V], int], counts: CacheCounts | None) -> None:
        """Start with an empty cache."""
        self.held = 0  # bytes
        self._memory = memory
        self._size = size
        self._counts = counts
        # With the size of each, as added: `getsizeof` of a text grows once something encodes it.
        self._entries: OrderedDict[H, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get_many(self, keys: Iterable[H]) -> list[V | None]:
        """The value of each key, or None."""
        entries = self._entries
        found: list[V | None] = []
        misses = 0
        for key in keys:
            entry = entries.get(key)
            if entry is None:
                misses += 1
                found.append(None)
            else:
                entries.move_to_end(key)
                found.append(entry[0])
        if self._counts is not None:
            hit, missed = self._counts
            hit.inc(len(found) - misses)
            missed.inc(misses)
        return found

    def keep(self, values: Iterable[tuple[H, V]]) -> None:
        """Add entries; a known key keeps its value, and very large entries are not kept."""
        if not self._memory.max_bytes:
            return
        entries, size = self._entries, self._size
        for key, value in values:
            known, needed = len(entries), size(key, value)
            if needed > LARGEST_ENTRY_BYTES:
                continue
            entries.setdefault(key, (value, needed))  # one look-up: hashing a key of many token ids takes long
            if len(entries) > known:
                self.held += needed
        self._memory.make_room()

    def evict(self, needed: int) -> None:
        """Drop the oldest entries until `needed` bytes are free, or the cache is empty."""
        rest = self.held - needed
        while self._entries and self.held > rest:
            _, (_, size) = self._entries.popitem(last=False)
            self.held -= size


# The remote tier is not asked for more new keys than this at once: 1,000 take Redis 25 ms to look up and 75 ms to
# write, which is over its time limit and would count as its failure.
REMOTE_MAX_KEYS = 500
# Models that need less time for a key do not use it with `auto`: measurements are in docs/caching.md.
REMOTE_PAYS_SECONDS = 250e-6
# To find a vector in memory, or to add one, takes some 8 us. With `auto`, a model that computes one in less is not
# cached: averaging models take 2 to 4 us, the next fastest 30.
LOOKUP_SECONDS = 10e-6

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

    memory: bool = False
    remote: str = ""  # name of the remote tier; empty: it is not used

    @property
    def names(self) -> list[str]:
        """The names of those in use, as answers and logs have them."""
        return [name for name in ("memory" if self.memory else "", self.remote) if name]


class RemoteCache(Backend, Protocol):
    """A second tier, shared between processes. It never raises: a failure is a miss."""

    name: str  # as answers and logs have it

    @property
    def up(self) -> bool:
        """Whether the last attempt to read succeeded."""

    async def get_many(self, space: VectorSpace, keys: Sequence[K]) -> dict[K, Vector]:
        """The vectors that it has."""

    def put_many(self, space: VectorSpace, vectors: Mapping[K, Vector]) -> None:
        """Write these in the background."""


class VectorCache:
    """The vectors of all models: an LRU cache in memory, then the remote tier."""

    def __init__(self, max_bytes: int, telemetry: Telemetry, remote: RemoteCache | None = None) -> None:
        """Start empty; `max_bytes` is for all caches of this process together, 0 keeps nothing."""
        self.memory = MemoryBudget(max_bytes)
        self.remote = remote
        self._lru = self.memory.lru(_vector_bytes, telemetry.cache_counters("memory"))
        self._telemetry = telemetry

    def __len__(self) -> int:
        return len(self._lru)

    def choose_tiers(self, policy: CachePolicy, first_key_seconds: float, next_key_seconds: float) -> CacheTiers:
        """The tiers by a policy, and by the seconds that a graph needs for one key alone and for one key more."""
        wanted = policy in ("memory", "redis") or (policy == "auto" and next_key_seconds >= LOOKUP_SECONDS)
        memory = self.memory.max_bytes > 0 and wanted
        pays = policy == "redis" or (policy == "auto" and first_key_seconds >= REMOTE_PAYS_SECONDS)
        return CacheTiers(memory, self.remote.name if self.remote is not None and pays else "")

    def of_scores(self) -> "ScoreCache":
        """A cache for the scores of one model's pairs, within the same budget."""
        return self.memory.lru(_score_bytes, self._telemetry.cache_counters("scores"))

    def find(self, space: VectorSpace, wanted: Collection[K]) -> dict[K, Vector]:
        """The vectors that are in memory; `wanted` has each key once."""
        kept = self._lru.get_many([(space, key) for key in wanted])
        return {key: vector for key, vector in zip(wanted, kept, strict=True) if vector is not None}

    async def fetch(self, space: VectorSpace, wanted: Sequence[K], tiers: CacheTiers) -> dict[K, Vector]:
        """The vectors that the remote tier has; they are added to those in memory."""
        if self.remote is None or len(wanted) > REMOTE_MAX_KEYS:
            return {}
        found = await self.remote.get_many(space, wanted)
        if tiers.memory:
            self._keep(space, found)
        return found

    def keep(self, space: VectorSpace, vectors: Mapping[K, Vector], tiers: CacheTiers) -> None:
        """Keep new vectors, which must be finite and own their memory; very many only in memory."""
        if tiers.memory:
            self._keep(space, vectors)
        if self.remote is not None and tiers.remote and len(vectors) <= REMOTE_MAX_KEYS:
            self.remote.put_many(space, vectors)

    def _keep(self, space: VectorSpace, vectors: Mapping[K, Vector]) -> None:
        self._lru.keep(((space, key), vector) for key, vector in vectors.items())


class ScoreEntry(NamedTuple):
    """The score of one pair, as it is answered."""

    raw: float
    rating: float | None
    score: float


ScoreCache = LruCache[Pair, ScoreEntry]
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
