"""Sentence embeddings kept in memory, and behind them, when there is one, in Redis.

A key is the model's fingerprint and the token ids, so an embedding found is the one the model would compute;
without any cache the answers are the same, only later.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from service.telemetry import Telemetry

# Of more new sentences at once the remote tier is not asked: the answer would outlast its time limit (1,000 take Redis
# some 25 ms to miss and 75 ms to keep), and count as its failure.
REMOTE_MOST = 500

Ids = tuple[int, ...]
Embedding = npt.NDArray[np.float32]  # [1, dim]: rows are joined by np.concatenate


@dataclass(frozen=True, slots=True)
class Space:
    """What an embedding belongs to."""

    fingerprint: str
    dim: int


class RemoteCache(Protocol):
    """A second tier, shared between processes. It never raises: what it cannot do is a miss."""

    async def get_many(self, space: Space, ids: Sequence[Ids]) -> dict[Ids, Embedding]:
        """The embeddings it has."""

    def put_many(self, space: Space, embeddings: Mapping[Ids, Embedding]) -> None:
        """Keep these, in its own time."""


class EmbeddingCache:
    """Least-recently-used embeddings in memory, then the remote tier."""

    def __init__(self, size: int, telemetry: Telemetry, remote: RemoteCache | None = None) -> None:
        self.size = size
        self._entries: OrderedDict[tuple[str, Ids], Embedding] = OrderedDict()
        self._hits, self._misses = telemetry.cache_counters("memory")
        self.remote = remote

    def __len__(self) -> int:
        return len(self._entries)

    async def get_many(self, space: Space, wanted: Iterable[Ids]) -> dict[Ids, Embedding]:
        """Those of the wanted embeddings that are kept somewhere."""
        found: dict[Ids, Embedding] = {}
        missing: list[Ids] = []
        for ids in wanted:
            key = (space.fingerprint, ids)
            embedding = self._entries.get(key)
            if embedding is None:
                missing.append(ids)
            else:
                self._entries.move_to_end(key)
                found[ids] = embedding
        if found:
            self._hits.inc(len(found))
        if missing:
            self._misses.inc(len(missing))
            if self.remote is not None and len(missing) <= REMOTE_MOST:
                distant = await self.remote.get_many(space, missing)
                self._keep(space, distant)
                found |= distant
        return found

    def put_many(self, space: Space, embeddings: Mapping[Ids, Embedding]) -> None:
        """Keep new embeddings in both tiers, very many only in memory; they must be finite, and own their memory."""
        self._keep(space, embeddings)
        if self.remote is not None and len(embeddings) <= REMOTE_MOST:
            self.remote.put_many(space, embeddings)

    def _keep(self, space: Space, embeddings: Mapping[Ids, Embedding]) -> None:
        if not self.size:
            return
        for ids, embedding in embeddings.items():
            self._entries[space.fingerprint, ids] = embedding
        while len(self._entries) > self.size:
            self._entries.popitem(last=False)
