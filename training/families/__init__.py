"""The families of models, one file and one object each: how they are trained and how published. Imports all others."""

from pathlib import Path
from typing import Any

from training.families.heads import PWIMTasksFamily
from training.families.interaction import InteractionFamily
from training.families.malstm import MaLSTMFamily
from training.families.siamese import SiameseFamily
from training.families.transformer import CrossEncoderFamily
from training.models import ArchitectureConfig, CrossEncoderConfig, InteractionConfig, PWIMTasksConfig
from training.objectives.manhattan import ManhattanConfig
from training.objectives.pairwise import PairwiseConfig
from training.objectives.tasks import TasksConfig
from training.recipes import starts_of
from training.recipes.recipe import Recipe
from training.recipes.sources.source import RecipeError
from training.recipes.sources.tables import PretrainedEncoder
from training.recipes.sources.tasks import TaskPairs
from training.train.family import ModelFamily


def family_of(recipe: Recipe, runs: Path, seed: int) -> ModelFamily[Any]:
    """The run of a recipe with a seed, as its family of models is trained and published, with those it starts from.

    Args:
        recipe: what is trained.
        runs: where word tables and runs lie.
        seed: of the run.

    Raises:
        RecipeError: no family has such an architecture, objective and data.
    """
    run: ModelFamily[Any] | None = None
    for start, its_seed in starts_of(recipe, seed):
        run = _family(start, runs, its_seed, run)
    return _family(recipe, runs, seed, run)


def _family(recipe: Recipe, runs: Path, seed: int, start: ModelFamily[Any] | None) -> ModelFamily[Any]:
    run = (recipe, runs, seed, start)
    objective, architecture, data, table = recipe.objective, recipe.architecture, recipe.data, recipe.table
    if isinstance(objective, TasksConfig):
        if isinstance(data, TaskPairs) and isinstance(architecture, PWIMTasksConfig):
            return PWIMTasksFamily(*run, objective, data, architecture)
        if (
            isinstance(data, TaskPairs)
            and isinstance(architecture, CrossEncoderConfig)
            and isinstance(table, PretrainedEncoder)
        ):
            return CrossEncoderFamily(*run, objective, data, architecture, table)
    elif isinstance(objective, PairwiseConfig):
        if isinstance(architecture, InteractionConfig):
            return InteractionFamily(*run, architecture, objective)
    elif isinstance(architecture, ArchitectureConfig):
        if isinstance(objective, ManhattanConfig):
            return MaLSTMFamily(*run, architecture, objective)
        return SiameseFamily(*run, architecture)
    kinds = ", ".join(type(part).__name__ for part in (objective, architecture, data, table))
    raise RecipeError(f"recipe {recipe.name!r}: no family has objective, architecture, data and table of {kinds}")
