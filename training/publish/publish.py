"""A trained run -> `models/<id>/`: calibrated, exported, proved equal, measured, described.

Nothing is written under `models/` unless every step before has passed; a published folder is replaced whole.
"""

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.manifest import Figure, Manifest, Provenance, TrainingData
from training.data.words.storage import Storage
from training.publish.figures import RunFigures, TrainingSummary, record_run
from training.publish.folders import assemble, environment, finish
from training.publish.runtime import PublishedModel
from training.recipes import find, program_of, published_as, starts_of
from training.recipes.recipe import Publication, Recipe
from training.recipes.sources.tables import PretrainedEncoder, ServedTable
from training.recipes.sources.tasks import TaskPairs
from training.recipes.teacher import TEACHERS
from training.train.family import ModelFamily
from training.train.loop import read_curve, read_result


def publish(
    family: ModelFamily[Any],
    models: Path,
    figures: Path,
    *,
    model_id: str | None = None,
    storage: Storage | None = None,
) -> Path:
    """Publish a trained run, whether its recipe names a publication or not; returns its folder.

    Args:
        family: of the recipe, with the seed of the run (`training.families.family_of`).
        models: where model folders live.
        figures: where measured figures go.
        model_id: another id than that of the recipe's publication, or, where it has none, than its name.
        storage: another form of its words.

    Raises:
        RecipeError: its corpus has no test part.
        RunMissing: it was not trained.
        ParityError, GraphMismatchError: the export does not compute what was trained; nothing is published.
    """
    publication = _publication(family.recipe, model_id, storage)
    target = models / publication.model_id
    with tempfile.TemporaryDirectory(prefix="publish-") as temporary:
        folder = Path(temporary) / publication.model_id
        folder.mkdir()
        manifest, measured = _assemble(family, publication, folder)
        record_run(figures, run_figures(family, publication.storage, "publish", measured))
        finish(folder, manifest, measured, family.golden_texts(manifest.limits.max_tokens), models, target)
    return target


def evaluate_run(family: ModelFamily[Any], figures: Path, storage: Storage = "float32") -> Path:
    """Measure a trained run on its test sets without publishing it; returns the file that has its line.

    Raises:
        RecipeError: its corpus has no test part.
    """
    family.recipe.data.check_test()  # before the work, not after it
    publication = _publication(family.recipe, None, storage)
    with tempfile.TemporaryDirectory(prefix="evaluate-") as temporary:
        folder = Path(temporary) / "model"
        folder.mkdir()
        _, measured = _assemble(family, publication, folder)
    return record_run(figures, run_figures(family, storage, f"evaluate --storage {storage}", measured))


def _publication(recipe: Recipe, model_id: str | None, storage: Storage | None) -> Publication:
    """How a run becomes a folder: as its recipe says, but for what was asked for."""
    known = recipe.publication or Publication(recipe.name, f"Recipe {recipe.name}: {recipe.architecture.name}")
    return replace(known, model_id=model_id or known.model_id, storage=storage or known.storage)


def training_summary(run: Path) -> TrainingSummary | None:
    """How a run's training ended; None where it has not."""
    if (trained := read_result(run)) is None:
        return None
    return TrainingSummary(
        dev=trained.best["selection"], best_epoch=trained.best_epoch, epochs=trained.epochs, seconds=trained.seconds
    )


def run_figures(family: ModelFamily[Any], storage: Storage, how: str, measured: list[Figure]) -> RunFigures:
    """The line of a trained run; `how` is the command that measured it, with its options."""
    recipe, (command, *options) = family.recipe, how.split(" ", 1)
    return RunFigures(
        recipe=recipe.name,
        seed=family.seed,
        storage=storage,
        command=" ".join([program_of(recipe.name), command, recipe.name, f"--seed {family.seed}", *options]),
        measured=datetime.now(UTC).date(),
        training=training_summary(family.folder),
        curve=read_curve(family.folder),
        figures=tuple(measured),
        settings=recipe.as_json(),
    )


def _assemble(family: ModelFamily[Any], publication: Publication, folder: Path) -> tuple[Manifest, list[Figure]]:
    """Export everything into a folder, and measure it; the manifest still lacks these figures and golden pairs."""
    recipe, trained = family.recipe, read_result(family.folder)
    manifest = assemble(
        folder,
        family.export(publication, folder),
        title=publication.title,
        architecture=recipe.architecture.name,
        training_data=training_data_for(recipe),
        provenance=Provenance(
            created=datetime.now(UTC).date(),
            recipe=recipe.as_json(),
            commands=commands_for(recipe, family.seed),
            seed=family.seed,
            environment=environment(),
            epoch_kept=None if trained is None else trained.best_epoch,
            epochs=None if trained is None else trained.epochs,
        ),
        languages=("en",),  # as all corpora
    )
    manifest = family.calibrate(manifest, folder)
    return manifest, recipe.data.test_figures(PublishedModel(folder, manifest))


def commands_for(recipe: Recipe, seed: int) -> tuple[str, ...]:
    """All commands from corpora to the published folder, in order."""
    table, kept = recipe.table, kept_teacher(recipe)
    runs = []
    for each, its in (*starts_of(recipe, seed), (recipe, seed)):
        if isinstance(each.data, TaskPairs) and each.data.rated_by is not None:
            runs.append(f"python -m training rate {each.name}")
        runs.append(f"{program_of(each.name)} train {each.name} --seed {its}")
    return (
        # What the teacher learnt lies in the repository; its recipe says how it was trained.
        *([f"python -m training weights {kept.table.name}"] if kept is not None else []),
        # A pretrained encoder needs no command: it is the teacher's folder.
        *([] if isinstance(table, PretrainedEncoder) else [f"python -m training {table.command} {table.name}"]),
        *runs,
        f"{program_of(recipe.name)} publish {recipe.name} --seed {seed}",
    )


def training_data_for(recipe: Recipe) -> tuple[TrainingData, ...]:
    """Every corpus used for training or selection, those of the runs it starts from and of its teacher included.

    An entry that several runs of the chain share is listed once.
    """
    chain = [*(start for start, _ in starts_of(recipe, 0)), recipe]
    table = chain[0].table
    found = training_data_for(published_as(table.model)) if isinstance(table, ServedTable) else table.sources()
    for each in chain:
        found = (*found, *each.data.sources(each.calibrated_on))
    if (kept := kept_teacher(recipe)) is not None:
        found = (*found, *training_data_for(kept))
    return tuple(dict.fromkeys(found))


def kept_teacher(recipe: Recipe) -> Recipe | None:
    """The recipe of the model that rates its pairs, where that is not published but kept."""
    name = recipe.data.rated_by if isinstance(recipe.data, TaskPairs) else None
    return find(name) if name in TEACHERS else None
