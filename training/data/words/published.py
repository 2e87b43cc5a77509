"""A word table from published word vectors: an `.npz` file with the arrays `words` and `vectors`.

The vocabulary is normalised like text (`core.text`); pieces and buckets are added as for every table
(`training.data.words.tables`).
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.text import split_words
from training.data.files import CorpusError
from training.data.words.tables import Matrix, WordTable, build


class VectorsError(CorpusError):
    """A file of word vectors cannot be read. The message names the file."""


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors: float32 [n, d], row i for `words[i]`."""

    words: list[str]
    vectors: Matrix

    def __len__(self) -> int:
        return len(self.words)


def read_vectors(path: Path) -> WordVectors:
    """Read a file of word vectors.

    Raises:
        VectorsError: other arrays, or not as many words as vectors.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            words, vectors = arrays["words"].tolist(), arrays["vectors"].astype(np.float32, copy=False)
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise VectorsError(f"{path}: expected the arrays 'words' (strings) and 'vectors' ({error})") from error
    if len(words) != len(vectors):
        raise VectorsError(f"{path}: {len(words)} words for {len(vectors)} vectors")
    return WordVectors(words, vectors)


def folded(vectors: WordVectors) -> WordVectors:
    """The words as the tokenizer normalises them, in the file's order (for published vectors: by frequency).

    Of words that normalise to the same one ("The", "the"), the vector of the normalised form is taken, else the first.
    Words that the tokenizer splits ("t-shirt") or drops are left out.
    """
    place = {word: row for row, word in enumerate(vectors.words)}
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        match split_words(word):
            case [one] if one not in rows:
                rows[one] = place.get(one, row)
    return WordVectors(list(rows), vectors.vectors[list(rows.values())])


def published_table(vectors: WordVectors, *, pieces: int, buckets: int) -> WordTable:
    """The word table of vectors, without scaling."""
    known = folded(vectors)
    return build(known.words, known.vectors, pieces=pieces, buckets=buckets)
