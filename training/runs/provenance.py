"""Provenance of a model: the commands that reproduce it, and the corpora with their licences."""

from contract.manifest import TrainingData
from training.recipes import published_as, starts_of
from training.recipes.recipe import Recipe
from training.sources.tables import PretrainedEncoder, ServedTable
from training.sources.tasks import TaskPairs


def commands_for(recipe: Recipe, seed: int) -> tuple[str, ...]:
    """All commands from corpora to the published folder, in order."""
    rated = isinstance(recipe.data, TaskPairs) and recipe.data.rated_by is not None
    table = recipe.table
    return (
        # A pretrained encoder needs no command: it is the teacher's folder.
        *([] if isinstance(table, PretrainedEncoder) else [f"python -m training {table.command} {table.name}"]),
        *([f"python -m training rate {recipe.name}"] if rated else []),
        *(
            f"python -m training train {each.name} --seed {its}"
            for each, its in (*starts_of(recipe, seed), (recipe, seed))
        ),
        f"python -m training publish {recipe.name} --seed {seed}",
    )


def training_data_for(recipe: Recipe) -> tuple[TrainingData, ...]:
    """Every corpus used for training or selection, those of the runs it starts from included.

    An entry that several runs of the chain share is listed once.
    """
    chain = [*(start for start, _ in starts_of(recipe, 0)), recipe]
    table = chain[0].table
    found = training_data_for(published_as(table.model)) if isinstance(table, ServedTable) else table.sources()
    for each in chain:
        found = (*found, *each.data.sources(each.calibrated_on))
    return tuple(dict.fromkeys(found))
