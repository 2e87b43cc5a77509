"""A word table from published word vectors: GloVe, PARAGRAM, word2vec, any format that `training.words.vectors` reads.

The vocabulary is normalised like text (`contract.text`); pieces and buckets are added as for every table
(`training.words.tables`).
"""

import numpy as np

from contract.text import split_words
from training.words.tables import WordTable, build
from training.words.vectors import WordVectors


def folded(vectors: WordVectors) -> WordVectors:
    """The words as the tokenizer normalises them, in the file's order (for published vectors: by frequency).

    Of words that normalise to the same one ("The", "the"), the vector of the normalised form is taken, else the first.
    Words that the tokenizer splits ("t-shirt") or drops are left out.
    """
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        match split_words(word):
            case [one] if one not in rows:
                rows[one] = vectors.index.get(one, row)
    return WordVectors(list(rows), vectors.vectors[list(rows.values())])


def published_table(vectors: WordVectors, *, pieces: int, buckets: int) -> WordTable:
    """The word table of vectors, without scaling.

    Raises:
        ValueError: no word is left to make a table of.
    """
    known = folded(vectors)
    if not len(known):
        raise ValueError(f"none of the {len(vectors)} words can stand in a sentence")
    return build(known.words, known.vectors, pieces=pieces, buckets=buckets)


def alike(one: WordTable, other: WordTable) -> bool:
    """Whether two tables have the same ids and, but for rounding, the same rows."""
    a, b = one.tokenizer, other.tokenizer
    same_ids = (a.words, a.pieces, a.buckets) == (b.words, b.pieces, b.buckets)
    return same_ids and one.rows.shape == other.rows.shape and np.allclose(one.rows, other.rows, atol=1e-4)
