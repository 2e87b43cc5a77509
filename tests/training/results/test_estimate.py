"""How long a run will take, from runs that are there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from training.recipes import find
from training.recipes.recipe import Recipe
from training.results.estimate import seconds_left, timings, training_seconds


def finished(runs: Path, recipe: Recipe, seed: int, epochs: int, seconds: float) -> None:
    """What a finished run leaves of itself."""
    folder = runs / recipe.name / f"seed-{seed}"
    folder.mkdir(parents=True)
    (folder / "recipe.json").write_text(json.dumps(recipe.as_json()))
    (folder / "result.json").write_text(json.dumps({"epochs": epochs, "seconds": seconds}))


def of_three_epochs(name: str) -> Recipe:
    return replace(find(name), schedule=replace(find(name).schedule, epochs=3))


def test_the_same_recipe_counts_before_a_similar_one(tmp_path: Path) -> None:
    finished(tmp_path, find("gran-1"), 1, epochs=2, seconds=200)
    finished(tmp_path, find("gran-2"), 1, epochs=2, seconds=400)
    finished(tmp_path, find("gran-avg"), 1, epochs=5, seconds=50)
    known = timings(tmp_path)
    assert training_seconds(of_three_epochs("gran-1"), known) == 300
    assert training_seconds(of_three_epochs("gran-3"), known) == 450  # the median epoch of 100 and 200 seconds
    assert training_seconds(of_three_epochs("gran-lstm"), known) == 300  # only the data is alike: 10, 100, 200
    assert training_seconds(find("avg-sick"), known) is None


def test_what_an_interrupted_run_has_behind_it_is_not_counted_again(tmp_path: Path) -> None:
    recipe = of_three_epochs("gran-avg")
    finished(tmp_path, recipe, 1, epochs=3, seconds=60)
    assert seconds_left(recipe, tmp_path, 2, timings(tmp_path)) == 60
    (tmp_path / "gran-avg" / "seed-2").mkdir()
    (tmp_path / "gran-avg" / "seed-2" / "metrics.jsonl").write_text('{"epoch": 0}\n{"epoch": 1}\n{"epoch": 2}\n')
    assert seconds_left(recipe, tmp_path, 2, timings(tmp_path)) == pytest.approx(20)


def test_a_run_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a" / "seed-1").mkdir(parents=True)
    (tmp_path / "a" / "seed-1" / "result.json").write_text("{")
    assert timings(tmp_path) == []
