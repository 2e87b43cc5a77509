"""From a file of published word vectors to a word table, and what is said of a file that is none."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from training.corpora import catalogue
from training.runs.folder import RunMissing
from training.runs.tables import load_table, make_published_table
from training.sources.tables import PublishedTable
from training.words.published import VectorsError, WordVectors, folded, published_table

WORDS = ["The", "cat", "the", "CAT", "t-shirt", "Dog", "DOG", "\u200b", "Caf\u00e9", "'s", "."]
RECIPE = PublishedTable("toy-found", corpus="glove-sick", pieces=40, buckets=3)
(FILE,) = catalogue.find(RECIPE.corpus).files


def vectors(words: list[str] | None = None, dim: int = 4) -> WordVectors:
    words = WORDS if words is None else words
    rows = np.random.default_rng(0).normal(size=(len(words), dim)).astype(np.float32)
    return WordVectors(words, rows)


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
