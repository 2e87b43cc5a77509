"""How long a run will take, from the runs that are there: each left its settings, epochs and seconds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from training.recipe import Recipe
from training.run import run_folder

MEASURE_SECONDS = 30.0  # export, parity and the test sets, until one was measured


@dataclass(frozen=True)
class Timing:
    """A finished run: its `recipe.json` and what it took."""

    settings: dict[str, Any]
    epochs: int
    seconds: float


def timings(runs: Path) -> list[Timing]:
    """Every finished run under a folder of runs; one that cannot be read is passed over, for it only informs."""
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
    """Seconds a run of all its epochs would take: those of the runs most like it, or None when none is like it.

    Most like it: the same recipe; else the same architecture, data and objective; else the same kinds of all three;
    else the same kind of data. Among them the median time of an epoch counts.
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
    """As `training_seconds`, less the epochs that an interrupted run has behind it."""
    whole = training_seconds(recipe, known)
    log = run_folder(runs, recipe, seed) / "metrics.jsonl"
    if whole is None or not log.is_file() or not recipe.schedule.epochs:
        return whole
    done = max(len(log.read_text(encoding="utf-8").splitlines()) - 1, 0)  # the first line is of epoch 0
    return whole * max(1 - done / recipe.schedule.epochs, 0.0)


def as_text(seconds: float) -> str:
    """Seconds as people say them: 40 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
