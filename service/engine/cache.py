"""Caches in memory; and the vectors of a graph: from memory, Redis or the graph, in this order. Where computing a
vector costs less than finding it, the graph computes all of them.

A vector is the embedding of a sentence, or an interaction model's output for a pair. Its key is the model's fingerprint
(which covers the tokenizer) and the token ids, so a cached vector is the one that the model would compute. Keys match
exactly: an approximate match could miss a "not".

Caches in memory drop what was used longest ago, and share one budget in bytes. The size of an entry is computed from
its key and value, by `sys.getsizeof`'s arithmetic for CPython on 64 bits; that takes less than a microsecond. When all
caches together exceed the budget, the largest one drops its oldest entries, so many new entries of one kind displace
few of the others.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import ref

import numpy as np
from prometheus_client import Counter

from core.sequences import Pair
from service.engine.admission import RequestContext, give_way
from service.engine.batcher import Batcher
from service.engine.graph import Rows, TextGraph
from service.engine.queue import Queue
from service.engine.vector_codec import K, Key, RemoteCache, Vector, VectorSpace
from service.observe.metrics import CACHE
from service.observe.telemetry import Telemetry

# Larger entries are not kept: hashing their keys costs about what the cache saves, and some hundreds of them would
# displace all others. A sentence of 512 tokens with an embedding of 768 numbers fits.
LARGEST_ENTRY_BYTES = 8192
ENTRY_BYTES = 296  # of the ordered dict: its node, its share of both tables, half of them empty; value with size
TUPLE_BYTES = 56  # without elements: header, length, its part in garbage collection
ID_BYTES = 8  # a reference: the tokenizer holds one object for each token id

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
        self._refs: list[ref[LruCache[Any, Any]]] = []

    @property
    def held(self) -> int:
        """Bytes that the caches hold."""
        return sum(cache.held for cache in self._caches())

    def lru(self, size: Callable[[H, V], int], counts: CacheCounts | None = None) -> "LruCache[H, V]":
        """A cache within this budget; `size` computes the bytes of a key and its value, always the same."""
        cache = LruCache(self, size, counts)
        self._refs = [*map(ref, self._caches()), ref(cache)]
        return cache

    def make_room(self) -> None:
        """Drop entries until the caches fit the budget."""
        while (excess := self.held - self.max_bytes) > 0:
            max(self._caches(), key=lambda cache: cache.held).evict(excess)

    def _caches(self) -> "list[LruCache[Any, Any]]":
        return [cache for each in self._refs if (cache := each()) is not None]


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
_ARRAY_BYTES, _FLOAT_BYTES = 144, 24  # of a numpy array beside its numbers; of one of Python's


class CacheTiers(NamedTuple):
    """The cache tiers that a model uses."""

    memory: bool = False
    remote: str = ""  # name of the remote tier; empty: it is not used

    @property
    def names(self) -> list[str]:
        """The names of those in use, as answers and logs have them."""
        return [name for name in ("memory" if self.memory else "", self.remote) if name]


class VectorCache:
    """The vectors of all models: an LRU cache in memory, then the remote tier."""

    def __init__(self, max_bytes: int, telemetry: Telemetry, remote: RemoteCache | None = None) -> None:
        """Start empty; `max_bytes` is for all caches of this process together, 0 keeps nothing."""
        self.memory = MemoryBudget(max_bytes)
        self.remote = remote
        self._lru = self.memory.lru(_vector_bytes, telemetry.cache_counters("memory"))
        self.score_counts = telemetry.cache_counters("scores")

    def __len__(self) -> int:
        return len(self._lru)

    def find(self, space: VectorSpace, wanted: Collection[K]) -> dict[K, Vector]:
        """The vectors that are in memory; `wanted` has each key once."""
        kept = self._lru.get_many([(space, key) for key in wanted])
        return {key: vector for key, vector in zip(wanted, kept, strict=True) if vector is not None}

    async def fetch(self, space: VectorSpace, wanted: Sequence[K], tiers: CacheTiers) -> dict[K, Vector]:
        """The vectors that the remote tier has; they are added to those in memory."""
        if self.remote is None or len(wanted) > REMOTE_MAX_KEYS:
            return {}
        found = await self.remote.get_many(space, wanted)
        self.keep(space, found, tiers._replace(remote=""))
        return found

    def keep(self, space: VectorSpace, vectors: Mapping[K, Vector], tiers: CacheTiers) -> None:
        """Keep new vectors, which must be finite and own their memory; very many only in memory."""
        if tiers.memory:
            self._lru.keep(((space, key), vector) for key, vector in vectors.items())
        if self.remote is not None and tiers.remote and len(vectors) <= REMOTE_MAX_KEYS:
            self.remote.put_many(space, vectors)


class Vectors(Generic[K]):
    """A graph's outputs for sentences or pairs, each computed once."""

    def __init__(self, graph: TextGraph[K], queue: Queue, cache: VectorCache, space: VectorSpace) -> None:
        self.batcher = Batcher(queue, graph)
        self.tiers = CacheTiers()
        self.cheaper_than_lookup = False  # whether computing a vector costs less than finding it in a cache
        self.cache = cache
        self._space = space

    async def get(self, context: RequestContext, keys: Sequence[K], *, cached: bool = True) -> Rows:
        """A row for each key, in their order.

        Args:
            context: of the request.
            keys: at least one.
            cached: whether to read and fill the caches; false for texts that no client sends.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
            Overloaded: too much is waiting already.
        """
        if self.cheaper_than_lookup and not (cached and any(self.tiers)):
            return await self.batcher.compute(context, keys)
        wanted = dict.fromkeys(keys)
        if not cached:
            return _spread(await self.batcher.compute(context, list(wanted)), wanted, keys)
        found: dict[K, Vector] = {}
        if self.tiers.memory:
            began = perf_counter()
            found = self.cache.find(self._space, wanted)
            context.spent(CACHE, began, perf_counter())
            await give_way(len(keys))
        if missing := [key for key in wanted if key not in found]:
            found |= await self._search(context, missing)
        return np.concatenate([found[key] for key in keys])

    def at_once(self, keys: Sequence[K]) -> Rows:
        """A row for each key, computed in this thread and without caches.

        Raises:
            InferenceFailed: the graph raised, or gave a number that is not finite.
        """
        wanted = dict.fromkeys(keys)
        return _spread(self.batcher.run_blocking(list(wanted)), wanted, keys)

    async def _search(self, context: RequestContext, keys: Sequence[K]) -> Mapping[K, Vector]:
        """Vectors from the remote cache or else from the graph."""
        found: Mapping[K, Vector] = {}
        if self.tiers.remote:
            began = perf_counter()
            found = await self.cache.fetch(self._space, keys, self.tiers)
            context.spent(CACHE, began, perf_counter())
        if missing := [key for key in keys if key not in found]:
            return {**found, **self._keep(missing, await self.batcher.compute(context, missing))}
        return found

    def _keep(self, keys: Sequence[K], rows: Rows) -> dict[K, Vector]:
        """The new vectors, which are kept; each owns its memory, so that none keeps its whole batch in memory."""
        vectors = {key: rows[i : i + 1].copy() for i, key in enumerate(keys)}
        self.cache.keep(self._space, vectors, self.tiers)
        return vectors


def _spread(rows: Rows, distinct: Iterable[K], keys: Sequence[K]) -> Rows:
    """The rows of distinct keys, once for each of `keys`."""
    place = {key: i for i, key in enumerate(distinct)}
    return rows[[place[key] for key in keys]]


_EACH_PAIR_BYTES = tuple_bytes(2) + 2 * tuple_bytes(0)


def _pair_bytes(pair: Pair) -> int:
    return _EACH_PAIR_BYTES + ID_BYTES * (len(pair[0]) + len(pair[1]))


def _vector_bytes(key: tuple[VectorSpace, Key], vector: Vector) -> int:
    ids = key[1]
    of_ids = _pair_bytes(ids) if isinstance(ids[0], tuple) else tuple_bytes(len(ids))
    return ENTRY_BYTES + tuple_bytes(len(key)) + of_ids + _ARRAY_BYTES + vector.nbytes


def score_bytes(pair: Pair, score: tuple[float | None, ...]) -> int:
    """Size of an entry of a pair and its scores."""
    return ENTRY_BYTES + _pair_bytes(pair) + tuple_bytes(len(score)) + _FLOAT_BYTES * len(score)
