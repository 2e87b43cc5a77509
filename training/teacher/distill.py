"""Static word vectors from a sentence-transformers model.

Whole words are encoded alone, the vectors reduced by PCA, and each scaled by its smooth inverse frequency, so
that an unweighted mean of rows is already a good sentence vector. The later regression to the teacher's sentence
cosines is an ordinary training run (`training/objectives/teacher_cosine.py`) that starts from this table.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from core.text import split_words
from training.data.words.tables import Matrix, WordTable, build, sif_weights
from training.progress import tracked
from training.teacher.encoder import TextEncoder, encode_cached


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Occurrences of each word, as the tokenizer splits them."""
    counts: Counter[str] = Counter()
    for text in tracked(texts, "counting words"):
        counts.update(split_words(text))
    return counts


def choose_vocabulary(counts: Counter[str], preferred: Iterable[str], size: int, *, minimum: int = 2) -> list[str]:
    """The `size` words to keep, most frequent first.

    Words of `preferred` (the teacher's own vocabulary) are included even if rare in our counts, because
    they are common in everyday text; other words seen fewer than `minimum` times are left to the fallback.
    """
    preferred = set(preferred)
    candidates = {w for w, n in counts.items() if n >= minimum} | preferred
    # A preferred word that was never seen ranks as if seen `minimum` times.
    rank = {w: max(counts[w], minimum) if w in preferred else counts[w] for w in candidates}
    kept = sorted(candidates, key=lambda w: (-rank[w], w not in preferred, w))[:size]
    return sorted(kept, key=lambda w: (-counts[w], w))


def distil(
    teacher: TextEncoder, words: Sequence[str], counts: Counter[str], *, dim: int, sif: float, cache: Path
) -> Matrix:
    """One float32 [dim] vector for each word: teacher encoding, centred PCA, SIF weight."""
    encoded = encode_cached(teacher, words, cache, what="words").astype(np.float32)
    reduced = PCA(dim, svd_solver="covariance_eigh").fit_transform(encoded).astype(np.float32)
    return reduced * sif_weights(counts, words, sif)[:, None]


def distil_table(
    teacher: TextEncoder,
    counts: Counter[str],
    preferred: Iterable[str],
    *,
    words: int,
    dim: int,
    pieces: int,
    buckets: int,
    sif: float,
    cache: Path,
) -> WordTable:
    """A word table from a teacher and word counts: vocabulary, vectors, fallback."""
    vocabulary = choose_vocabulary(counts, preferred, words)
    vectors = distil(teacher, vocabulary, counts, dim=dim, sif=sif, cache=cache)
    return build(vocabulary, vectors, pieces=pieces, buckets=buckets)
