"""Vectors that graphs computed, kept in memory, and behind that, where there is one, in Redis.

What is kept is the embedding of a sentence, or what an interaction model says of a pair. A key is the model's
fingerprint (which digests its tokenizer too) and the token ids, so a vector found is the one the model would compute;
without any cache the answers are the same, only later. Nothing is ever found by likeness: "not" would be overheard.
"""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from service.telemetry import Telemetry

# Of more new keys at once the remote tier is not asked: the answer would outlast its time limit (1,000 take Redis
# some 25 ms to miss and 75 ms to keep), and count as its failure.
REMOTE_MOST = 500
# Where a graph needs less for a key, it is asked instead: finding and keeping a key there would cost as much. What was
# measured is in docs/caching.md.
REMOTE_PAYS_SECONDS = 250e-6

Ids = tuple[int, ...]
Pair = tuple[Ids, Ids]
Key = Ids | Pair
Vector = npt.NDArray[np.float32]  # [1, dim]: rows are joined by np.concatenate
Policy = Literal["auto", "memory", "redis", "off"]
K = TypeVar("K", bound=Key)
H = TypeVar("H", bound=Hashable)
V = TypeVar("V")


class Space(NamedTuple):
    """What a vector belongs to."""

    fingerprint: str  # of the model
    dim: int
    graph: str = ""  # of a pair: an interaction model may have several graphs


class Tiers(NamedTuple):
    """Which tiers a model uses."""

    memory: bool
    redis: bool

    @property
    def names(self) -> list[str]:
        """Those in use, as people are told."""
        return [name for name, used in zip(self._fields, self, strict=True) if used]


class RemoteCache(Protocol):
    """A second tier, shared between processes. It never raises: what it cannot do is a miss."""

    async def get_many(self, space: Space, keys: Sequence[K]) -> dict[K, Vector]:
        """The vectors it has."""

    def put_many(self, space: Space, vectors: Mapping[K, Vector]) -> None:
        """Keep these, in its own time."""


class Recent(Generic[H, V]):
    """A value for each key; of too many, those not asked for longest go."""

    def __init__(self, size: int) -> None:
        """Start empty; of size 0 it stays so."""
        self._size = size
        self._entries: OrderedDict[H, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, keys: Collection[H]) -> list[V] | None:
        """The values of the keys, if all of them are there."""
        entries = self._entries
        try:
            found = [entries[key] for key in keys]
        except KeyError:
            return None
        for key in keys:
            entries.move_to_end(key)
        return found

    def get_many(self, keys: Iterable[H]) -> dict[H, V | None]:
        """Each key with its value, or with none."""
        found = {key: self._entries.get(key) for key in keys}
        for key, value in found.items():
            if value is not None:
                self._entries.move_to_end(key)
        return found

    def keep(self, values: Mapping[H, V] | Iterable[tuple[H, V]]) -> None:
        """Keep these."""
        self._entries.update(values)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)


class VectorCache:
    """Least-recently-used vectors in memory, then the remote tier; shared by all models."""

    def __init__(self, size: int, telemetry: Telemetry, remote: RemoteCache | None = None) -> None:
        """Start empty.

        Args:
            size: vectors kept in memory.
            telemetry: counts hits and misses.
            remote: the second tier, if there is one.
        """
        self.size = size
        self.remote = remote
        self._recent = Recent[tuple[Space, Key], Vector](size)
        self._telemetry = telemetry
        self._hits, self._misses = telemetry.cache_counters("memory")

    def __len__(self) -> int:
        return len(self._recent)

    def tiers(self, policy: Policy, seconds: float) -> Tiers:
        """What a policy means for a graph that needs so many seconds for one key."""
        memory = self.size > 0 and policy != "off"
        pays = policy == "redis" or (policy == "auto" and seconds >= REMOTE_PAYS_SECONDS)
        return Tiers(memory, self.remote is not None and pays)

    def of_scores(self) -> "ScoreCache":
        """A cache for one model's scores, of the same size."""
        return ScoreCache(self.size, self._telemetry)

    def find(self, space: Space, wanted: Collection[K]) -> dict[K, Vector]:
        """Those of the wanted vectors, each named once, that are in memory."""
        kept = self._recent.get_many([(space, key) for key in wanted]).values()
        found = {key: vector for key, vector in zip(wanted, kept, strict=True) if vector is not None}
        if found:
            self._hits.inc(len(found))
        if len(found) < len(wanted):
            self._misses.inc(len(wanted) - len(found))
        return found

    async def fetch(self, space: Space, wanted: Sequence[K], tiers: Tiers) -> dict[K, Vector]:
        """Those that the remote tier has; they are kept in memory from then on."""
        if self.remote is None or not tiers.redis or len(wanted) > REMOTE_MOST:
            return {}
        found = await self.remote.get_many(space, wanted)
        if tiers.memory:
            self._keep(space, found)
        return found

    def keep(self, space: Space, vectors: Mapping[K, Vector], tiers: Tiers) -> None:
        """Keep new vectors, very many only in memory; they must be finite, and own their memory."""
        if tiers.memory:
            self._keep(space, vectors)
        if self.remote is not None and tiers.redis and len(vectors) <= REMOTE_MOST:
            self.remote.put_many(space, vectors)

    def _keep(self, space: Space, vectors: Mapping[K, Vector]) -> None:
        self._recent.keep(((space, key), vector) for key, vector in vectors.items())


class Score(NamedTuple):
    """Of one pair, as it is answered."""

    raw: float
    rating: float | None
    score: float


class ScoreCache:
    """Scores of one model's pairs: a pair asked again costs one look-up."""

    def __init__(self, size: int, telemetry: Telemetry) -> None:
        """Start empty; of size 0 it stays so."""
        self._recent = Recent[Pair, Score](size)
        self._hits, self._misses = telemetry.cache_counters("scores")

    def find(self, pairs: Collection[Pair]) -> list[Score] | None:
        """The scores, if all of them are kept."""
        found = self._recent.find(pairs)
        (self._misses if found is None else self._hits).inc(len(pairs))
        return found

    def keep(self, pairs: Iterable[Pair], scores: Iterable[Score]) -> None:
        """Keep these."""
        self._recent.keep(zip(pairs, scores, strict=True))
