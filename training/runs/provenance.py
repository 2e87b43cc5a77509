"""Provenance of a model: the commands that reproduce it, and the corpora with their licences."""

from contract.manifest import TrainingData
from training.objectives.manhattan import ManhattanConfig
from training.recipes import find, published_as
from training.recipes.recipe import Recipe
from training.sources.tables import PretrainedEncoder, ServedTable
from training.sources.tasks import TaskPairs


def commands_for(recipe: Recipe, seed: int) -> tuple[str, ...]:
    """All commands from corpora to the published folder, in order."""
    chain = [(recipe, seed)]
    while (first := chain[0][0]).start is not None:
        chain.insert(0, (find(first.start), chain[0][1] if first.start_seed is None else first.start_seed))
    rated = isinstance(recipe.data, TaskPairs) and recipe.data.rated_by is not None
    table = recipe.table
    return (
        # A pretrained encoder needs no command: it is the teacher's folder.
        *([] if isinstance(table, PretrainedEncoder) else [f"python -m training {table.command} {table.name}"]),
        *([f"python -m training rate {recipe.name}"] if rated else []),
        *(f"python -m training train {each.name} --seed {its}" for each, its in chain),
        f"python -m training publish {recipe.name} --seed {seed}",
    )


def training_data_for(recipe: Recipe) -> tuple[TrainingData, ...]:
    """Every corpus used for training or selection, those of the runs it starts from included.

    An entry that several runs of the chain share is listed once.
    """
    if recipe.start is not None:
        before = training_data_for(find(recipe.start))
    elif isinstance(recipe.table, ServedTable):
        before = training_data_for(published_as(recipe.table.model))
    else:
        before = recipe.table.sources()
    calibrated_on = recipe.objective.calibrate_on if isinstance(recipe.objective, ManhattanConfig) else None
    return tuple(dict.fromkeys([*before, *recipe.data.sources(calibrated_on)]))
