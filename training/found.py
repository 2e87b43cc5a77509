"""A word table from published word vectors: GloVe, PARAGRAM, word2vec, whatever `training.vectors` reads.

The vocabulary is folded as text is (`contract.text`), pieces and buckets are those of every table (`training.tables`).
"""

import numpy as np

from contract.text import split_words
from training.tables import WordTable, build
from training.vectors import WordVectors


def folded(vectors: WordVectors) -> WordVectors:
    """The words as the tokenizer writes them, in the file's order, which for published vectors is by frequency.

    Of words that fold to the same one ("The", "the"), the vector of the folded form itself counts, else the first.
    Words that no sentence can hold are left out: the tokenizer splits them ("t-shirt") or drops them.
    """
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        match split_words(word):
            case [one] if one not in rows:
                rows[one] = vectors.index.get(one, row)
    return WordVectors(list(rows), vectors.vectors[list(rows.values())])


def found_table(vectors: WordVectors, *, pieces: int, buckets: int) -> WordTable:
    """The word table of vectors as they were read, their length included.

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
