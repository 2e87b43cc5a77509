"""A trained run -> `models/<id>/`: calibrated, exported, proved equal, measured, described.

Nothing is written under `models/` unless every step before has passed; a published folder is replaced whole.
"""

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from contract.manifest import Figure, Manifest, Provenance
from training.objectives.pairwise import PairwiseConfig
from training.objectives.tasks import TasksConfig
from training.publishing.families import interaction, siamese, tasks
from training.publishing.figures import FigureFile
from training.publishing.folders import assemble, environment, finish
from training.publishing.runtime import PublishedModel
from training.recipes.recipe import Publication, Recipe
from training.runs.folder import run_folder
from training.runs.loop import read_result
from training.runs.provenance import commands_for, training_data_for
from training.words.storage import Storage


def publish(
    recipe: Recipe,
    runs: Path,
    models: Path,
    figures: Path,
    seed: int,
    *,
    model_id: str | None = None,
    storage: Storage | None = None,
) -> Path:
    """Publish a trained run, whether its recipe names a publication or not; returns its folder.

    Args:
        recipe: what was trained.
        runs: where its run lies.
        models: where model folders live.
        figures: where measured figures go.
        seed: of the run.
        model_id: another id than that of the recipe's publication, or, where it has none, than its name.
        storage: another form of its words.

    Raises:
        RecipeError: its corpus has no test part.
        RunMissing: it was not trained.
        ParityError, GraphMismatchError: the export does not compute what was trained; nothing is published.
    """
    publication = _publication(recipe, model_id, storage)
    target = models / publication.model_id
    with tempfile.TemporaryDirectory(prefix="publish-") as temporary:
        folder = Path(temporary) / publication.model_id
        folder.mkdir()
        manifest = _assemble(recipe, publication, runs, folder, seed)
        measured = recipe.data.test_figures(PublishedModel(folder, manifest))
        _figure_file(recipe, seed, publication.storage, "publish", measured).save(figures)
        texts = _family(recipe).golden_texts(recipe, runs, seed, manifest.limits.max_tokens)
        finish(folder, manifest, measured, texts, models, target)
    return target


def evaluate_run(recipe: Recipe, runs: Path, seed: int, figures: Path, storage: Storage = "float32") -> Path:
    """Measure a trained run on its test sets without publishing it; returns the file of figures.

    Raises:
        RecipeError: its corpus has no test part.
    """
    recipe.data.check_test()  # before the work, not after it
    publication = _publication(recipe, None, storage)
    with tempfile.TemporaryDirectory(prefix="evaluate-") as temporary:
        folder = Path(temporary) / "model"
        folder.mkdir()
        manifest = _assemble(recipe, publication, runs, folder, seed)
        measured = recipe.data.test_figures(PublishedModel(folder, manifest))
    return _figure_file(recipe, seed, storage, f"evaluate --storage {storage}", measured).save(figures)


def _publication(recipe: Recipe, model_id: str | None, storage: Storage | None) -> Publication:
    """How a run becomes a folder: as its recipe says, but for what was asked for."""
    known = recipe.publication or Publication(recipe.name, f"Recipe {recipe.name}: {recipe.architecture.name}")
    return replace(known, model_id=model_id or known.model_id, storage=storage or known.storage)


def _figure_file(recipe: Recipe, seed: int, storage: Storage, how: str, measured: list[Figure]) -> FigureFile:
    command, *options = how.split(" ", 1)
    return FigureFile(
        recipe=recipe.name,
        seed=seed,
        storage=storage,
        command=" ".join(["python -m training", command, recipe.name, f"--seed {seed}", *options]),
        measured=datetime.now(UTC).date(),
        figures=tuple(measured),
        settings=recipe.as_json(),
    )


def _assemble(recipe: Recipe, publication: Publication, runs: Path, folder: Path, seed: int) -> Manifest:
    """Export everything into a folder; the manifest still lacks its figures and golden pairs."""
    manifest = assemble(
        folder,
        _family(recipe).write_folder(recipe, publication, runs, folder, seed),
        title=publication.title,
        architecture=recipe.architecture.name,
        training_data=training_data_for(recipe),
        provenance=_provenance(recipe, runs, seed),
        languages=("en",),  # as all corpora
    )
    return siamese.calibrate(manifest, recipe, runs, folder, seed) if _family(recipe) is siamese else manifest


def _family(recipe: Recipe) -> ModuleType:
    """The module that writes the files of the recipe's family."""
    if isinstance(recipe.objective, TasksConfig):
        return tasks
    return interaction if isinstance(recipe.objective, PairwiseConfig) else siamese


def _provenance(recipe: Recipe, runs: Path, seed: int) -> Provenance:
    trained = read_result(run_folder(runs, recipe, seed))
    return Provenance(
        created=datetime.now(UTC).date(),
        recipe=recipe.as_json(),
        commands=commands_for(recipe, seed),
        seed=seed,
        environment=environment(),
        epoch_kept=None if trained is None else trained.best_epoch,
        epochs=None if trained is None else trained.epochs,
    )
