"""Readers of published word vectors.

Formats: GloVe and PARAGRAM text (``word v1 .. vd``, Pennington et al. 2014; Wieting et al. 2015), word2vec text (the
same under a ``count dimension`` line) and word2vec binary (Mikolov et al. 2013), each plain or gzip; and ``.npz`` with
the arrays ``words`` and ``vectors``. The format is recognised by the first bytes, not by the name.
"""

import gzip
import io
import itertools
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from training.corpora.files import CorpusError

Matrix = npt.NDArray[np.float32]

_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK"
_PEEK = 1 << 20  # bytes looked at to tell word2vec text from binary; a line of a thousand values is some 10 KB
_LONGEST_WORD = 4096  # bytes; a longer one means another format


class VectorsError(CorpusError):
    """A file of word vectors cannot be read. The message names the file, and the line where it has any."""


@dataclass(frozen=True)
class WordVectors:
    """Distinct words and their vectors: float32 [n, d], row i for ``words[i]``; ValueError when the two disagree."""

    words: list[str]
    vectors: Matrix

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.vectors.dtype != np.float32:
            raise ValueError(f"vectors must be float32 [n, d], got {self.vectors.dtype} {self.vectors.shape}")
        if len(self.words) != len(self.vectors):
            raise ValueError(f"{len(self.words)} words for {len(self.vectors)} vectors")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dimension(self) -> int:
        """Values per vector."""
        return self.vectors.shape[1]

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}


def read_vectors(path: Path) -> WordVectors:
    """Read any of the formats above; of a repeated word the first vector is taken.

    Bytes of a word that are not UTF-8 (word2vec files have some) become U+FFFD.

    Raises `VectorsError`: missing file, a line with too few values or with one that is no finite number (file and line
    named), a count other than the header's, damaged gzip or npz data.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(2)
            file.seek(0)
            if magic == _ZIP_MAGIC:
                return _collect(*_npz(path, file))
            plain: Any = gzip.GzipFile(fileobj=file) if magic == _GZIP_MAGIC else file
            with io.BufferedReader(plain, _PEEK) as stream:  # for a peek of our own size
                return _collect(*_stream(path, stream))
    except FileNotFoundError as error:
        raise VectorsError(f"{path}: no such file of word vectors") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise VectorsError(f"{path}: damaged gzip data ({error})") from error


# Each format yields (word, float32 little-endian bytes of its vector), so that only the result is in memory.
Entries = Iterator[tuple[str, bytes]]


def _collect(entries: Entries, dimension: int) -> WordVectors:
    words: dict[str, None] = {}
    rows = bytearray()
    for word, row in entries:
        if word not in words:
            words[word] = None
            rows += row
    values = np.frombuffer(rows, dtype="<f4").astype(np.float32, copy=False)
    return WordVectors(list(words), values.reshape(len(words), dimension))


def _stream(path: Path, stream: io.BufferedReader) -> tuple[Entries, int]:
    first = stream.readline(_PEEK)
    fields = first.split()
    if not fields:
        raise VectorsError(f"{path}, line 1: expected a word and its values, got an empty line or file")
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        dimension = len(_cells(first, None)) - 1
        if dimension < 1:
            raise VectorsError(f"{path}, line 1: expected a word and its values, got {first[:60]!r}")
        return _text(path, itertools.chain([first], stream), dimension, None), dimension
    count, dimension = int(fields[0]), int(fields[1])
    if dimension < 1:
        raise VectorsError(f"{path}, line 1: expected a dimension of at least 1, got {dimension}")
    if _is_text(stream.peek(_PEEK), dimension):
        return _text(path, stream, dimension, count), dimension
    return _binary(path, stream, dimension, count), dimension


def _cells(line: bytes, dimension: int | None) -> list[bytes]:
    """Word and values, cut from the right: a word may itself contain spaces (glove.840B has ``. . .``)."""
    return line.rstrip(b" \r\n").rsplit(b" ", -1 if dimension is None else dimension)


def _is_text(start: bytes, dimension: int) -> bool:
    cells = _cells(start.split(b"\n", 1)[0], dimension)
    try:
        return len(cells) == dimension + 1 and all(math.isfinite(float(cell)) for cell in cells[1:])
    except ValueError:
        return False


def _text(path: Path, lines: Iterable[bytes], dimension: int, count: int | None) -> Entries:
    """Entries of a text file; ``count`` is the header's, None where line 1 is already an entry."""
    first = 1 if count is None else 2
    number = first - 1
    for number, line in enumerate(lines, first):
        cells = _cells(line, dimension)
        if len(cells) != dimension + 1 or not cells[0]:
            raise VectorsError(
                f"{path}, line {number}: expected a word and {dimension} values, got {len(line.split())} fields"
            )
        yield _decode(cells[0]), _parse(path, number, cells[1:])
    if count is not None and number - 1 != count:
        raise VectorsError(f"{path}: line 1 announces {count} words, the file has {number - 1}")


def _parse(path: Path, number: int, cells: list[bytes]) -> bytes:
    try:
        with np.errstate(over="ignore"):  # beyond float32: refused below
            values = np.array([float(cell) for cell in cells], dtype="<f4")
    except ValueError as error:
        raise VectorsError(f"{path}, line {number}: expected {len(cells)} numbers ({error})") from error
    if not np.isfinite(values).all():
        raise VectorsError(f"{path}, line {number}: expected {len(cells)} finite numbers, got NaN or infinity")
    return values.tobytes()


def _binary(path: Path, stream: io.BufferedReader, dimension: int, count: int) -> Entries:
    for number in range(1, count + 1):
        word = _binary_word(path, stream, number)
        row = stream.read(4 * dimension)
        if len(row) != 4 * dimension:
            raise VectorsError(f"{path}: ends within the vector of word {number} of {count} announced in line 1")
        if not np.isfinite(np.frombuffer(row, dtype="<f4")).all():
            raise VectorsError(f"{path}: word {number} ({word!r}) has NaN or infinity in its vector")
        yield word, row


def _binary_word(path: Path, stream: io.BufferedReader, number: int) -> str:
    word = bytearray()
    while (byte := stream.read(1)) != b" ":
        if not byte or len(word) > _LONGEST_WORD:
            raise VectorsError(f"{path}: expected word {number} and a space, as word2vec binary has it; found neither")
        word += byte
    return _decode(bytes(word).lstrip(b"\n"))  # the original tool ends each vector with a line feed, gensim does not


def _npz(path: Path, file: BinaryIO) -> tuple[Entries, int]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise VectorsError(f"{path}: expected the arrays 'words' (strings) and 'vectors' ({error})") from error
    if words.ndim != 1 or words.dtype.kind != "U" or vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise VectorsError(
            f"{path}: expected words as strings [n] and vectors as floats [n, d], "
            f"got {words.dtype} {words.shape} and {vectors.dtype} {vectors.shape}"
        )
    if len(words) != len(vectors):
        raise VectorsError(f"{path}: {len(words)} words for {len(vectors)} vectors")
    if not np.isfinite(vectors).all():
        raise VectorsError(f"{path}: vectors contain NaN or infinity")
    rows = vectors.astype("<f4", copy=False)
    return ((word, row.tobytes()) for word, row in zip(words.tolist(), rows, strict=True)), vectors.shape[1]


def _decode(word: bytes) -> str:
    return word.decode("utf-8", errors="replace")
