"""A published model rates the training pairs of a recipe that learns from it."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from training.objectives.supervised import LABELS
from training.objectives.tasks import Rated
from training.pairs import Pair
from training.progress import tracked
from training.publishing.runtime import PublishedModel
from training.recipes.recipe import Recipe
from training.runs.ratings import ratings_file, save_ratings
from training.sources.source import RecipeError
from training.sources.tasks import TaskPairs

logger = logging.getLogger(__name__)

CHUNK = 4_000  # pairs between two marks of the progress bar


def rate(recipe: Recipe, models: Path, runs: Path, teacher: Path | None) -> int:
    """Write the ratings that `train` needs; corpora that are rated already are left out. Returns the pairs rated.

    Args:
        recipe: what is to be trained.
        models: where model folders live.
        runs: where the ratings go.
        teacher: the encoder whose cosines are among the pairs.

    Raises:
        RecipeError: the recipe names no model to learn from.
        ArtifactError: its folder is missing or broken.
    """
    if not isinstance(recipe.data, TaskPairs) or recipe.data.rated_by is None:
        raise RecipeError(f"recipe {recipe.name!r} learns from no published model")
    name = recipe.data.rated_by
    model, rated = PublishedModel(models / name), 0
    for corpus, pairs in recipe.data.train(teacher, runs / "teacher").items():
        path = ratings_file(runs, name, corpus, pairs)
        if path.is_file():
            continue
        rows = np.random.default_rng(0).permutation(len(pairs))[: recipe.data.rated_pairs]
        rows.sort()
        save_ratings(path, _rated(model, pairs, rows, corpus))
        rated += len(rows)
    return rated


def _rated(model: PublishedModel, pairs: Sequence[Pair], rows: np.ndarray, corpus: str) -> Rated:
    found: dict[str, list[np.ndarray]] = {}
    for start in tracked(range(0, len(rows), CHUNK), f"{corpus}: chunks of {CHUNK} pairs"):
        chunk = [pairs[i] for i in rows[start : start + CHUNK]]
        for task, values in model.probabilities([p.a for p in chunk], [p.b for p in chunk], LABELS).items():
            found.setdefault(task, []).append(values)
    return Rated(rows, {task: np.concatenate(parts).astype(np.float32) for task, parts in found.items()})
