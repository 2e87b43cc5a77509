"""Word tables: pieces learnt and fitted, buckets, SIF weights, and the folder on disk."""

import hashlib
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from contract.tokenizer import Tokenizer
from tests.harness import toys
from training.words.tables import WordTable, build, fit_pieces, learn_pieces, sif_weights

SYLLABLES = ("ka", "lo", "mi", "ter", "ing", "ness", "un", "re")
DERIVED = tuple(a + b + c for a, b, c in product(SYLLABLES, repeat=3))  # 512 words of three parts each


def test_pieces_begin_or_continue_words_and_hold_the_alphabet() -> None:
    pieces = learn_pieces(DERIVED, 100)
    assert pieces == sorted(set(pieces))
    assert {"a", "z", "0", "9", "##a", "##z", "##0", "##9"} <= set(pieces)
    assert {"##ness", "##ter", "##ing"} <= set(pieces)
    assert all(p.removeprefix("##").isalnum() and p.isascii() for p in pieces)
    assert learn_pieces(DERIVED, 0) == []


def test_every_plain_word_is_covered_by_pieces() -> None:
    tokenizer = Tokenizer(["the"], learn_pieces(DERIVED, 100), 5)
    first_bucket = len(tokenizer) - 5
    for word in ("quixotic", "r2d2", "x", "42", *DERIVED[::50]):
        assert max(tokenizer.encode(word, 99).ids) < first_bucket
    assert min(tokenizer.encode("\u043c\u043e\u0441\u043a\u0432\u0430", 99).ids) >= first_bucket


def test_another_process_learns_the_same_pieces() -> None:
    program = (
        "import hashlib; from training.words.tables import learn_pieces; from itertools import product;"
        f"words = [''.join(p) for p in product({SYLLABLES!r}, repeat=3)];"
        "print(hashlib.sha256(' '.join(learn_pieces(words, 150)).encode()).hexdigest())"
    )
    expected = hashlib.sha256(" ".join(learn_pieces(DERIVED, 150)).encode()).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "2"}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert found.strip() == expected


def planted(seed: int = 0) -> tuple[Tokenizer, np.ndarray, np.ndarray]:
    """A tokenizer of syllables, a vector for each piece, and the words' vectors: the sums of their pieces."""
    pieces = [*SYLLABLES, *(f"##{s}" for s in SYLLABLES)]
    tokenizer = Tokenizer([], pieces, 1)
    rows = np.random.default_rng(seed).standard_normal((len(pieces), 6)).astype(np.float32)
    vectors = np.stack([rows[np.array(tokenizer.fallback(word)) - 1].sum(0) for word in DERIVED])
    return tokenizer, rows, vectors.astype(np.float32)


def test_fitting_is_ridge_regression() -> None:
    tokenizer, _, vectors = planted()
    design = np.zeros((len(DERIVED), 16))
    for row, word in zip(design, DERIVED, strict=True):
        np.add.at(row, np.array(tokenizer.fallback(word)) - 1, 1)
    expected = np.linalg.solve(design.T @ design + 3.0 * np.eye(16), design.T @ vectors)
    assert fit_pieces(tokenizer, DERIVED, vectors, ridge=3.0) == pytest.approx(expected, abs=1e-4)


def test_words_the_pieces_do_not_cover_teach_nothing() -> None:
    tokenizer, _, vectors = planted()
    noise = np.full((2, 6), 1e6, np.float32)
    with_noise = fit_pieces(tokenizer, [*DERIVED, "xyz", "kaloz"], np.concatenate([vectors, noise]))
    assert with_noise == pytest.approx(fit_pieces(tokenizer, DERIVED, vectors), abs=1e-5)
    assert not fit_pieces(tokenizer, ["xyz"], noise[:1]).any()


def test_a_built_table_has_a_row_for_every_id() -> None:
    vectors = np.random.default_rng(0).standard_normal((len(DERIVED), 5)).astype(np.float32)
    table = build(DERIVED, vectors, pieces=100, buckets=7)
    assert table.rows.shape == (len(table.tokenizer), 5)
    assert table.rows.dtype == np.float32
    assert not table.rows[0].any()
    assert np.array_equal(table.rows[1 : 1 + len(DERIVED)], vectors)
    assert np.array_equal(table.rows[1 + len(DERIVED) : -7], fit_pieces(table.tokenizer, DERIVED, vectors))
    lengths = np.linalg.norm(table.rows[-7:], axis=1)
    assert lengths == pytest.approx(np.full(7, np.median(np.linalg.norm(vectors, axis=1))), rel=1e-5)
    assert np.linalg.matrix_rank(table.rows[-7:]) == 5  # different buckets point in different directions
    again = build(DERIVED, vectors, pieces=100, buckets=7)
    assert np.array_equal(again.rows, table.rows)


def test_the_folder_gives_back_the_same_table(tmp_path: Path) -> None:
    table = toys.table()
    table.save(tmp_path / "t")
    again = WordTable.load(tmp_path / "t")
    assert np.array_equal(again.rows, table.rows)
    assert again.tokenizer.words == table.tokenizer.words


def test_sif_weights_by_hand() -> None:
    counts = {"the": 900, "cat": 99, "rare": 1}
    found = sif_weights(counts, ["the", "cat", "rare", "never"], a=1e-3)
    assert found == pytest.approx([1e-3 / 0.901, 1e-3 / 0.1, 0.5, 1.0], rel=1e-6)
    assert found.dtype == np.float32
    assert sif_weights({}, ["x"]).tolist() == [1.0]
