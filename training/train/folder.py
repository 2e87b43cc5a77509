"""The folder of a run, `runs/<recipe>/seed-<n>/`: path, recorded settings, finished weights."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.files import replacing
from training.errors import UserError
from training.recipes.recipe import Recipe, differences

WEIGHTS_NAME = "model.pt"  # the finished weights, after the map of unseen rows


class RecipeChangedError(UserError):
    """The run in this folder was begun with settings that differ from the recipe."""

    exit_code = 2


class RunMissing(UserError):
    """A run that is needed, as a start or to be published, was not trained yet."""


def run_folder(runs: Path, recipe: Recipe, seed: int) -> Path:
    """Path of a run."""
    return runs / recipe.name / f"seed-{seed}"


def weights_of(recipe: Recipe, runs: Path, seed: int) -> Path:
    """Path of a run's finished weights.

    Raises:
        RunMissing: it was not trained; names the command.
    """
    path = run_folder(runs, recipe, seed) / WEIGHTS_NAME
    if not path.is_file():
        raise RunMissing(f"{path} is not there: run `python -m training train {recipe.name} --seed {seed}` first")
    return path


def record_recipe(folder: Path, recipe: Recipe, seed: int) -> None:
    """Write `recipe.json`, or refuse to resume a run with other settings.

    `publication` and `reaches` may change. A setting that an older run did not record had its default value.

    Raises:
        RecipeChangedError: a run with other settings was begun in this folder.
    """
    if changed := changed_settings(folder, recipe, seed):
        raise RecipeChangedError(f"{folder} was begun with another {', '.join(changed)}: move it away to start afresh")
    settings = {**recipe.as_json(), "seed": seed}
    write_settings(folder / "recipe.json", settings)


def changed_settings(folder: Path, recipe: Recipe, seed: int) -> list[str]:
    """Names of the settings that differ between the run begun in this folder and the recipe now; none without a run."""
    path = folder / "recipe.json"
    if not path.exists():
        return []
    begun = read_settings(path)
    return ["seed"] * (begun.pop("seed", None) != seed) + differences(begun, recipe)


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings of a run, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def read_settings(path: Path) -> dict[str, Any]:
    """Read the settings of a run; raises RecipeChangedError where they cannot be told."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError, RecursionError):
        raise RecipeChangedError(f"{path} is damaged: move {path.parent} away to start afresh") from None
