"""Vectors and their keys; as bytes, for a cache outside of this process, with a seal that tells whether each is whole.

A name is `semblance:3:<fingerprint, 16 hex digits>:<BLAKE2b-128 of the token ids>`. A value is one byte of format, the
vector in little-endian floats, and a seal over the name and these bytes. The seal detects garbage, values cut short,
vectors of another size, and answers to another request's name. It is a BLAKE2b-128 (RFC 7693); with a secret a keyed
one, which cannot be forged with access to the cache alone.
"""

import hashlib
import hmac
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from core.sequences import Ids, Pair
from service.engine.breaker import Backend

Key = Ids | Pair
Vector = npt.NDArray[np.float32]  # [1, dim]: rows are joined by np.concatenate
K = TypeVar("K", bound=Key)
_FORMAT, _DTYPE = 0x11, np.dtype("<f4")
_KEYED = 0x20  # added to the format of a value whose seal is keyed
_SEAL_BYTES = 16


class VectorSpace(NamedTuple):
    """The model and graph that vectors belong to."""

    fingerprint: str  # of the model
    dim: int
    graph: str = ""  # of a pair: an interaction model may have several graphs


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


def name_of(space: VectorSpace, key: Key) -> bytes:
    """The name of the vector of a sentence or a pair."""
    digest = hashlib.blake2b(space.graph.encode() + b"\0", digest_size=16)
    for ids in (key,) if isinstance(key[0], int) else key:
        digest.update(struct.pack(f"<{1 + len(ids)}I", len(ids), *ids))
    return f"semblance:3:{space.fingerprint[:16]}:{digest.hexdigest()}".encode()


class VectorCodec:
    """Vectors to sealed bytes, and back."""

    def __init__(self, secret: str | None) -> None:
        """Choose the seal. Without a secret, whoever reaches the cache can forge vectors."""
        key = b"" if secret is None else hashlib.blake2b(secret.encode()).digest()  # of any length -> 64 bytes
        self._mac = hashlib.blake2b(digest_size=_SEAL_BYTES, key=key)
        self._marker = _FORMAT if secret is None else _FORMAT + _KEYED

    def encode(self, name: bytes, vector: Vector) -> bytes:
        """The value to keep under a name."""
        content = bytes((self._marker,)) + vector.astype(_DTYPE).tobytes()
        return content + self._seal(name, content)

    def decode(self, name: bytes, value: object, dim: int) -> Vector | None:
        """The vector that was kept under a name; None if the value is none of ours, or not whole."""
        if not isinstance(value, bytes) or len(value) != 1 + dim * _DTYPE.itemsize + _SEAL_BYTES:
            return None
        content, seal = value[:-_SEAL_BYTES], value[-_SEAL_BYTES:]
        if content[0] != self._marker or not hmac.compare_digest(self._seal(name, content), seal):
            return None
        vector = np.frombuffer(content, _DTYPE, offset=1).astype(np.float32)[None]
        return vector if np.isfinite(vector).all() else None

    def _seal(self, name: bytes, content: bytes) -> bytes:
        """The seal of a value; all names have one length, so name and content cannot be shifted against each other."""
        mac = self._mac.copy()
        mac.update(name)
        mac.update(content)
        return mac.digest()
