"""Least-recently-used caches in memory that share one budget in bytes.

The size of an entry is computed from its key and value, by `sys.getsizeof`'s arithmetic for CPython on 64 bits; that
takes less than a microsecond. When all caches together exceed the budget, the largest one drops its oldest entries, so
many new entries of one kind displace few of the others.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar
from weakref import ref

# Larger entries are not kept: hashing their keys costs about what the cache saves, and some hundreds of them would
# displace all others. A sentence of 512 tokens with an embedding of 768 numbers fits.
LARGEST_ENTRY_BYTES = 8192
ENTRY_BYTES = 296  # of the ordered dict: its node, its share of both tables, half of them empty; value with size
TUPLE_BYTES = 56  # without elements: header, length, its part in garbage collection
ID_BYTES = 8  # a reference: the tokenizer holds one object for each token id
_SEEN, _MOST_SEEN = 1 << 20, 100_000  # flags, of a byte each, and the number of keys after which all are reset

H = TypeVar("H")
V = TypeVar("V")


def tuple_bytes(length: int) -> int:
    """Size of a tuple, without its elements, which exist anyway."""
    return TUPLE_BYTES + ID_BYTES * length


class MemoryBudget:
    """A budget in bytes for several caches; a cache that is no longer referenced does not count."""

    def __init__(self, most: int) -> None:
        """Start without caches; `most` is in bytes, 0 keeps nothing."""
        self.most = most
        self.seen = Doorkeeper()
        self._caches: list[ref[LruCache[Any, Any]]] = []

    @property
    def held(self) -> int:
        """Bytes that the caches hold."""
        return sum(cache.held for cache in self._living())

    def lru(self, size: Callable[[H, V], int]) -> "LruCache[H, V]":
        """A cache within this budget; `size` computes the bytes of a key and its value, always the same."""
        cache = LruCache(self, size)
        self._caches = [each for each in self._caches if each() is not None]
        self._caches.append(ref(cache))
        return cache

    def make_room(self) -> None:
        """Drop entries until the caches fit the budget."""
        while (excess := self.held - self.most) > 0:
            max(self._living(), key=lambda cache: cache.held).forget(excess)

    def _living(self) -> "list[LruCache[Any, Any]]":
        return [cache for each in self._caches if (cache := each()) is not None]


class Doorkeeper:
    """An approximate set of the keys seen so far; at most one new key in ten is taken for a known one.

    A value that costs less to compute than to add and evict is added when its key comes a second time (the doorkeeper
    of TinyLFU, Einziger, Friedman & Manes 2017).
    """

    def __init__(self) -> None:
        """Start with an empty set of keys."""
        self._flags = bytearray(_SEEN)
        self._rest = _MOST_SEEN

    def again(self, keys: Sequence[Hashable]) -> list[int]:
        """1 for each key that an earlier call had, else 0."""
        if self._rest < len(keys):
            self._flags, self._rest = bytearray(_SEEN), _MOST_SEEN
        self._rest -= len(keys)
        flags, places = self._flags, [hash(key) % _SEEN for key in keys]
        found = [flags[place] for place in places]
        for place in places:
            flags[place] = 1
        return found


class LruCache(Generic[H, V]):
    """One cache; made by `MemoryBudget.lru`."""

    def __init__(self, memory: MemoryBudget, size: Callable[[H, V], int]) -> None:
        """Start with an empty cache."""
        self.held = 0  # bytes
        self._memory = memory
        self._size = size
        # With the size of each, as added: `getsizeof` of a text grows once something encodes it.
        self._entries: OrderedDict[H, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get_many(self, keys: Iterable[H]) -> list[V | None]:
        """The value of each key, or None."""
        entries = self._entries
        found: list[V | None] = []
        for key in keys:
            entry = entries.get(key)
            if entry is None:
                found.append(None)
            else:
                entries.move_to_end(key)
                found.append(entry[0])
        return found

    def get(self, key: H) -> V | None:
        """The value of a key, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def discard(self, key: H) -> None:
        """Drop the entry of a key, if there is one."""
        if (entry := self._entries.pop(key, None)) is not None:
            self.held -= entry[1]

    def keep(self, values: Iterable[tuple[H, V]]) -> None:
        """Add entries; a known key keeps its value, and very large entries are not kept."""
        if not self._memory.most:
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

    def forget(self, needed: int) -> None:
        """Drop the oldest entries until `needed` bytes are free, or the cache is empty."""
        rest = self.held - needed
        while self._entries and self.held > rest:
            _, (_, size) = self._entries.popitem(last=False)
            self.held -= size
