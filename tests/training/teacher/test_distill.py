"""From a toy teacher and word counts to a word table."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from training.teacher.distill import choose_vocabulary, count_words, distil, distil_table
from training.words.tables import sif_weights

WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "ter", "ing") for b in ("ness", "un", "re", "fa", "so", "dur")]
HIDDEN = 12


class Toy:
    """Every letter has a direction in a plane of 4 dimensions of 12; a text is the sum, plus a constant."""

    name = "toy"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rng = np.random.default_rng(0)
        letters = rng.standard_normal((26, 4))
        plane = np.linalg.qr(rng.standard_normal((HIDDEN, 4)))[0].T
        sums = [sum(letters[ord(c) - 97] for c in text) for text in texts]
        return (np.array(sums) @ plane + 3.0).astype(np.float32)


def test_words_are_counted_as_the_tokenizer_splits_them() -> None:
    assert count_words(["The cat doesn't.", "the CAT"]) == Counter({"the": 2, "cat": 2, "does": 1, "n't": 1, ".": 1})


def test_the_vocabulary_is_the_most_frequent_words_with_the_preferred_ones() -> None:
    counts = Counter({"a": 9, "b": 5, "c": 5, "d": 2, "once": 1})
    assert choose_vocabulary(counts, [], 10) == ["a", "b", "c", "d"]  # "once" is below the minimum
    assert choose_vocabulary(counts, [], 2) == ["a", "b"]  # ties by the alphabet
    assert choose_vocabulary(counts, ["once", "never"], 10) == ["a", "b", "c", "d", "once", "never"]
    # A preferred word ranks as if seen twice: after "c", before "d", which was seen twice indeed.
    assert choose_vocabulary(counts, ["never"], 4) == ["a", "b", "c", "never"]
    assert choose_vocabulary(counts, [], 10, minimum=5) == ["a", "b", "c"]


def test_distilled_vectors_are_centred_principal_components_with_sif_weights(tmp_path: Path) -> None:
    counts = Counter({word: 10 * (i + 1) for i, word in enumerate(WORDS)})
    found = distil(Toy(), WORDS, counts, dim=4, sif=1e-2, cache=tmp_path)
    assert found.shape == (len(WORDS), 4)
    assert found.dtype == np.float32
    plain = found / sif_weights(counts, WORDS, 1e-2)[:, None]
    assert plain.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-4)
    # Four components hold the whole plane: distances are those of the teacher.
    encoded = Toy().encode(WORDS).astype(np.float64)
    for i, j in ((0, 1), (3, 17), (29, 4)):
        expected = np.linalg.norm(encoded[i] - encoded[j])
        assert np.linalg.norm(plain[i] - plain[j]) == pytest.approx(expected, abs=0.02)  # kept as float16
    variance = plain.var(axis=0)
    assert (np.diff(variance) < 0).all()


def test_the_whole_road_gives_a_table_that_reads_rare_words(tmp_path: Path) -> None:
    counts = Counter(dict.fromkeys(WORDS, 5) | {"kaka": 1})
    table = distil_table(
        Toy(), counts, ["teacherword"], words=100, dim=4, pieces=80, buckets=3, sif=1e-3, cache=tmp_path
    )
    assert table.tokenizer.words == (*sorted(WORDS), "teacherword")
    assert table.rows.shape == (len(table.tokenizer), 4)
    # The toy is linear in letters, so pieces can stand for a word that was left out.
    ids = table.tokenizer.encode("kaness", 9).ids
    left_out = table.tokenizer.fallback("kaness")
    known, guessed = table.rows[list(ids)].sum(0), table.rows[left_out].sum(0)
    assert len(ids) == 1
    assert known @ guessed / np.linalg.norm(known) / np.linalg.norm(guessed) > 0.9
