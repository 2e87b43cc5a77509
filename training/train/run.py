"""Run a recipe: build model and objective, train, save the finished weights."""

import logging
from pathlib import Path
from typing import Any

import torch

from training.train.family import ModelFamily
from training.train.folder import WEIGHTS_NAME, record_recipe
from training.train.loop import Result, train

logger = logging.getLogger(__name__)


def run(family: ModelFamily[Any], teacher: Path | None) -> Result:
    """Train a recipe, or resume it; writes the finished weights to `runs/<recipe>/seed-<n>/model.pt`.

    Args:
        family: of the recipe, with the seed of the run (`training.families.family_of`).
        teacher: folder of a sentence-transformers model, where one was given.

    Raises:
        RunMissing: the word table or the run this one starts from is missing.
        RecipeError: the data need a teacher and none was given.
        RecipeChangedError: the folder has a run of another recipe or of other settings.
        CorpusError: a corpus is missing or malformed.
    """
    recipe, folder = family.recipe, family.folder
    folder.mkdir(parents=True, exist_ok=True)
    logger.info("%s seed %d: reading %s", recipe.name, family.seed, type(recipe.data).__name__)
    model = family.build(teacher)
    objective = family.objective(model, teacher)
    record_recipe(folder, recipe, family.seed)
    result = train(objective, recipe.optimiser, recipe.schedule, folder, seed=family.seed)
    family.after_training(objective, teacher)
    weights = model.state_dict()
    if recipe.learnt_share < 1:
        begun = family.build(teacher).state_dict()
        weights = {name: torch.lerp(begun[name], weight, recipe.learnt_share) for name, weight in weights.items()}
    torch.save(weights, folder / WEIGHTS_NAME)
    return result
