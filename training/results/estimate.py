"""Estimates of the duration of a run, from the settings, epochs and seconds of finished runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from training.recipes.recipe import Recipe
from training.runs.folder import run_folder

MEASURE_SECONDS = 30.0  # export, parity and the test sets, until one was measured


@dataclass(frozen=True)
class Timing:
    """Settings and duration of a finished run."""

    settings: dict[str, Any]
    epochs: int
    seconds: float


def timings(runs: Path) -> list[Timing]:
    """Every finished run in a folder of runs; unreadable ones are skipped."""
    found = []
    for path in sorted(runs.glob("*/seed-*/result.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            settings = json.loads((path.parent / "recipe.json").read_text(encoding="utf-8"))
            found.append(Timing(settings, int(result["epochs"]), float(result["seconds"])))
        except (OSError, ValueError, KeyError):
            continue
    return found


def training_seconds(recipe: Recipe, known: Sequence[Timing]) -> float | None:
    """Estimated seconds of all epochs of a run, from the most similar runs; None if there is no similar run.

    Most similar: the same recipe; else the same architecture, data and objective; else the same kinds of all three;
    else the same kind of data. The median time of an epoch of these is used.
    """
    wanted = recipe.as_json()

    def kinds(settings: dict[str, Any], *parts: str) -> list[str]:
        return [settings.get(part, {}).get("kind", "") for part in parts]

    likeness = (
        lambda s: s.get("name") == recipe.name,
        lambda s: all(s.get(part) == wanted[part] for part in ("architecture", "data", "objective")),
        lambda s: kinds(s, "architecture", "data", "objective") == kinds(wanted, "architecture", "data", "objective"),
        lambda s: kinds(s, "data") == kinds(wanted, "data"),
    )
    for like in likeness:
        epochs = [each.seconds / each.epochs for each in known if each.epochs > 0 and like(each.settings)]
        if epochs:
            return median(epochs) * recipe.schedule.epochs
    return None


def seconds_left(recipe: Recipe, runs: Path, seed: int, known: Sequence[Timing]) -> float | None:
    """As `training_seconds`, without the epochs that an interrupted run has completed."""
    whole = training_seconds(recipe, known)
    log = run_folder(runs, recipe, seed) / "metrics.jsonl"
    if whole is None or not log.is_file() or not recipe.schedule.epochs:
        return whole
    done = max(len(log.read_text(encoding="utf-8").splitlines()) - 1, 0)  # the first line is of epoch 0
    return whole * max(1 - done / recipe.schedule.epochs, 0.0)
