"""A published model's ratings of a recipe's pairs: a file for each corpus, read back for training."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.harness import toy_runs, toys
from training.families import teaching
from training.families.heads import load_ratings, ratings_file, save_ratings
from training.objectives.tasks import Rated
from training.pairs import Pair
from training.recipes import find
from training.recipes.recipe import Recipe
from training.runs.folder import RunMissing
from training.sources.source import RecipeError

PAIRS = {"sick": toys.RATED, "msrp": toys.RATED[:3]}
GROUPS = {"wikiqa-hard": toys.RATED}  # learnt by the order of answers, without ratings


class Model:
    """Says of a pair how many characters its texts have."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []

    def probabilities(self, a: Sequence[str], b: Sequence[str], labels: Sequence[str]) -> Mapping[str, np.ndarray]:
        self.asked += a
        return {"relevance": np.array([[len(x) + len(y)] for x, y in zip(a, b, strict=True)], dtype=np.float64)}


def recipe(**changes: Any) -> Recipe:
    """The recipe of pwim-general, whose pairs are ours."""
    full = find("pwim-general")
    return replace(full, data=toy_runs.given(PAIRS | GROUPS)(**(vars(full.data) | changes)))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Model]:
    models: list[Model] = []

    def open_it(folder: Path) -> Model:
        models.append(Model(folder))
        return models[-1]

    monkeypatch.setattr(teaching, "PublishedModel", open_it)
    monkeypatch.setattr(teaching, "CHUNK", 3)
    return models


def test_every_corpus_is_rated_once_and_read_back(tmp_path: Path, opened: list[Model]) -> None:
    few = recipe(rated_pairs=5)
    assert teaching.rate(few, tmp_path / "models", tmp_path, None) == 5 + 3
    found = load_ratings(tmp_path, "minilm-cross", few.data.rated(PAIRS | GROUPS))
    assert set(found) == set(PAIRS)
    assert len(found["sick"].rows) == 5
    assert found["msrp"].rows.tolist() == [0, 1, 2]
    for corpus, rated in found.items():
        expected = [len(PAIRS[corpus][i].a) + len(PAIRS[corpus][i].b) for i in rated.rows]
        assert rated.probabilities["relevance"][:, 0].tolist() == expected
    assert teaching.rate(few, tmp_path / "models", tmp_path, None) == 0
    assert len(opened[0].asked) == 8
    assert not opened[1].asked


def test_a_corpus_of_another_convention_is_not_rated(tmp_path: Path, opened: list[Model]) -> None:
    without_sick = recipe(unrated=("sick",))
    assert teaching.rate(without_sick, tmp_path / "models", tmp_path, None) == 3
    assert set(load_ratings(tmp_path, "minilm-cross", without_sick.data.rated(PAIRS))) == {"msrp"}


def test_a_recipe_without_a_model_to_learn_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="'mpnet-pairs' learns from no published model"):
        teaching.rate(find("mpnet-pairs"), tmp_path, tmp_path, None)


def test_missing_ratings_and_those_of_other_pairs_name_the_command(tmp_path: Path) -> None:
    save_ratings(ratings_file(tmp_path, "m", "sick", PAIRS["sick"]), Rated(np.arange(2), {}))
    assert set(load_ratings(tmp_path, "m", {"sick": PAIRS["sick"]})) == {"sick"}
    with pytest.raises(RunMissing, match="m did not rate sick: run `python -m training rate RECIPE` first"):
        load_ratings(tmp_path, "m", {"sick": [*PAIRS["sick"], Pair("a", "b")]})
