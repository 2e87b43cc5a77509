"""Word tables: learnt and fitted, from published vectors, on disk, and after training."""

import hashlib
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from core.tokenizer import Tokenizer
from training.data import catalogue
from training.data.words.published import VectorsError, WordVectors, folded, published_table
from training.data.words.storage import Storage
from training.data.words.tables import WordTable, build, fit_pieces, learn_pieces, sif_weights
from training.data.words.unseen import map_unseen
from training.families.words import embedding
from training.recipes.sources.tables import PublishedTable
from training.train.folder import RunMissing
from training.train.tables import load_table, make_published_table

SYLLABLES = ("ka", "lo", "mi", "ter", "ing", "ness", "un", "re")
DERIVED = tuple(a + b + c for a, b, c in product(SYLLABLES, repeat=3))  # 512 words of three parts each


@pytest.mark.parametrize(("storage", "tolerance"), [("float32", 0.0), ("int8", 0.05)])
def test_rows_are_published_times_a_factor(storage: Storage, tolerance: float) -> None:
    rows = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    published = embedding(WordTable(Tokenizer(["a"]), rows), storage, 3.0)
    found = published(torch.arange(1, 3)).detach().numpy()
    np.testing.assert_allclose(found, rows[1:] * np.float32(3.0), rtol=0, atol=tolerance)


def test_pieces_begin_or_continue_words_and_hold_the_alphabet() -> None:
    pieces = learn_pieces(DERIVED, 100)
    assert pieces == sorted(set(pieces))
    assert {"a", "z", "0", "9", "##a", "##z", "##0", "##9"} <= set(pieces)
    assert {"##ness", "##ter", "##ing"} <= set(pieces)
    assert all(p.removeprefix("##").isalnum() and p.isascii() for p in pieces)
    assert learn_pieces(DERIVED, 0) == []
    # Every plain word is covered by them.
    tokenizer = Tokenizer(["the"], pieces, 5)
    first_bucket = len(tokenizer) - 5
    for word in ("quixotic", "r2d2", "x", "42", *DERIVED[::50]):
        assert max(tokenizer.encode(word, 99).ids) < first_bucket
    assert min(tokenizer.encode("\u043c\u043e\u0441\u043a\u0432\u0430", 99).ids) >= first_bucket


def test_another_process_learns_the_same_pieces() -> None:
    program = (
        "import hashlib; from training.data.words.tables import learn_pieces; from itertools import product;"
        f"words = [''.join(p) for p in product({SYLLABLES!r}, repeat=3)];"
        "print(hashlib.sha256(' '.join(learn_pieces(words, 150)).encode()).hexdigest())"
    )
    expected = hashlib.sha256(" ".join(learn_pieces(DERIVED, 150)).encode()).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "2"}
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
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


def test_a_built_table_has_a_row_for_every_id_and_is_saved_whole(tmp_path: Path) -> None:
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

    # The folder gives back the same table.
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


D = 4


def moved(ridge: float, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """start, trained, seen, map, and what comes out, for rows that all moved by one linear map."""
    rng = np.random.default_rng(0)
    start = rng.standard_normal((n, D)).astype(np.float32)
    start[0] = 0.0
    linear = np.eye(D) + 0.3 * rng.standard_normal((D, D))
    seen = rng.integers(0, 9, n)
    seen[0] = 0
    trained = start.copy()
    trained[seen > 0] = (start[seen > 0] @ linear).astype(np.float32)
    return start, trained, seen, linear, map_unseen(start, trained, seen, ridge=ridge)


def test_a_linear_movement_is_recovered_and_seen_rows_and_padding_stay() -> None:
    start, _, seen, linear, found = moved(ridge=1e-6)
    unseen = (seen == 0) & (np.arange(len(seen)) > 0)
    assert unseen.sum() > 10
    assert found[unseen] == pytest.approx(start[unseen] @ linear, abs=1e-4)
    assert found.dtype == np.float32
    start, trained, seen, _, found = moved(ridge=10.0)
    assert np.array_equal(found[seen > 0], trained[seen > 0])
    assert not found[0].any()
    assert np.abs(found[seen == 0][1:] - start[seen == 0][1:]).max() > 0.1


def test_rows_seen_too_rarely_do_not_bend_the_map() -> None:
    start, trained, seen, linear, _ = moved(ridge=1e-6)
    trained[(seen > 0) & (seen < 5)] += 100.0
    found = map_unseen(start, trained, seen, minimum=5, ridge=1e-6)
    assert found[seen == 0][1:] == pytest.approx(start[seen == 0][1:] @ linear, abs=1e-4)


WORDS = ["The", "cat", "the", "CAT", "t-shirt", "Dog", "DOG", "\u200b", "Caf\u00e9", "'s", "."]
RECIPE = PublishedTable("toy-found", corpus="glove-sick", pieces=40, buckets=3)
(FILE,) = catalogue.find(RECIPE.corpus).files


def vectors() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the recipe's file belongs; it is not there yet."""
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    (tmp_path / FILE).parent.mkdir(parents=True)
    return tmp_path / FILE


def put(path: Path, **arrays: object) -> None:
    known = vectors()
    with path.open("wb") as file:
        np.savez(file, **({"words": np.array(known.words), "vectors": known.vectors} | arrays))


def test_words_are_folded_as_text_is_and_of_equal_ones_the_folded_form_counts() -> None:
    known = vectors()
    found = folded(known)
    # Not "t-shirt", which text never holds as one word, and nothing of an invisible character.
    assert found.words == ["the", "cat", "dog", "cafe", "'s", "."]
    assert_array_equal(found.vectors, known.vectors[[2, 1, 5, 8, 9, 10]])


def test_the_table_reads_its_words_and_falls_back_for_others() -> None:
    table = published_table(vectors(), pieces=40, buckets=3)
    assert table.rows.dtype == np.float32
    assert table.rows.shape == (len(table.tokenizer), 4)
    assert_array_equal(table.rows[0], 0.0)
    read = table.tokenizer.encode("The CAT's t-shirt.", 99)
    assert [table.tokenizer.token(i) for i in read.ids[:3]] == ["the", "cat", "'s"]
    assert (read.words, read.unknown) == (7, 3)  # "t", "-" and "shirt"
    assert_array_equal(table.rows[list(read.ids[:3])], vectors().vectors[[2, 1, 9]])
    (hyphen,) = table.tokenizer.encode("-", 9).ids
    lengths = np.linalg.norm(folded(vectors()).vectors, axis=1)
    assert np.linalg.norm(table.rows[hyphen]) == pytest.approx(np.median(lengths), rel=1e-5)


def test_the_file_of_the_catalogue_becomes_a_table_that_runs_find(path: Path, tmp_path: Path) -> None:
    put(path)
    runs = tmp_path / "runs"
    with pytest.raises(RunMissing, match="run `python -m training vectors toy-found`"):
        load_table(RECIPE, runs)
    made = make_published_table(RECIPE, runs)
    kept = load_table(RECIPE, runs)
    assert kept.tokenizer.words == made.tokenizer.words == ("the", "cat", "dog", "cafe", "'s", ".")
    assert len(kept.tokenizer.pieces) > 0
    assert kept.tokenizer.buckets == 3
    assert_array_equal(kept.rows, made.rows)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"vectors": np.ones((10, 4), np.float32)}, "11 words for 10 vectors"),
        ({"words": np.array(WORDS, dtype=object)}, "expected the arrays 'words'"),  # pickled: never loaded
    ],
)
def test_a_file_of_other_arrays_is_refused_and_nothing_is_made(
    path: Path, tmp_path: Path, arrays: dict[str, np.ndarray], expected: str
) -> None:
    put(path, **arrays)
    with pytest.raises(VectorsError, match=expected):
        make_published_table(RECIPE, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
