"""A trained run -> `models/<id>/`, or one version in it: calibrated, exported, proved equal, measured, described.

Nothing is written under `models/` unless every step before has passed; a published folder is replaced whole.
"""

import logging
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import cast

from contract.golden import GoldenPair, GoldenPairs
from contract.manifest import (
    MANIFEST_NAME,
    VERSION_NAME,
    EntailmentLabel,
    Figure,
    FileEntry,
    Limits,
    Manifest,
    Provenance,
    describe_file,
)
from training.objectives.pairwise import PairwiseConfig
from training.objectives.tasks import TasksConfig
from training.publishing.card import write_card
from training.publishing.families import interaction, siamese, tasks
from training.publishing.figures import FigureFile
from training.publishing.runtime import PublishedModel
from training.publishing.shared_files import alone, install, sweep
from training.recipes.recipe import Publication, Recipe
from training.runs.folder import run_folder
from training.runs.loop import read_result
from training.runs.provenance import commands_for, training_data_for
from training.words.storage import Storage

logger = logging.getLogger(__name__)

GOLDEN, CARD = "golden.json", "README.md"


def publish(
    recipe: Recipe,
    runs: Path,
    models: Path,
    figures: Path,
    seed: int,
    version: int | None = None,
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
        version: write `models/<id>/<version>`, for a model with versions.
        model_id: another id than that of the recipe's publication, or, where it has none, than its name.
        storage: another form of its words.

    Raises:
        RecipeError: its corpus has no test part.
        FileExistsError: the model has versions where none is given, or the other way round.
        RunMissing: it was not trained.
        ParityError, GraphMismatchError: the export does not compute what was trained; nothing is published.
    """
    publication = _publication(recipe, model_id, storage)
    target = place_for(models / publication.model_id, version)
    with tempfile.TemporaryDirectory(prefix="publish-") as temporary:
        folder = Path(temporary) / publication.model_id
        folder.mkdir()
        manifest = _assemble(recipe, publication, runs, folder, seed)
        measured = recipe.data.test_figures(PublishedModel(folder, manifest))
        _figure_file(recipe, seed, publication.storage, "publish", measured).save(figures)
        texts = _family(recipe).golden_texts(recipe, runs, seed, manifest.limits.max_tokens)
        finish(folder, manifest, measured, texts, models, target)
    return target


def finish(
    folder: Path,
    manifest: Manifest,
    measured: Sequence[Figure],
    texts: Sequence[tuple[str, str]],
    models: Path,
    target: Path,
) -> None:
    """Complete a model's folder with golden pairs, figures and card, and put it into its place.

    Args:
        folder: with all files that the manifest names; shared ones lie beside it.
        manifest: without figures, golden pairs and fingerprint.
        measured: its figures.
        texts: what the golden pairs ask.
        models: where model folders live.
        target: the model's, see `place_for`.
    """
    golden = _golden_pairs(PublishedModel(folder, manifest), texts)
    golden.save(folder / GOLDEN)
    shared = {name: entry for name, entry in manifest.files.items() if entry.shared}
    manifest = manifest.model_copy(update={"figures": tuple(measured), "files": files_of(folder) | shared})
    manifest = manifest.model_copy(update={"fingerprint": manifest.expected_fingerprint()})
    manifest.save(folder)
    write_card(manifest, folder / CARD)
    Manifest.load(folder).verify(folder)
    with alone(models):
        # Shared files are there before the model that names them, and go after the last one that did.
        install(folder.parent, models)
        replace_folder(folder, target)
        sweep(models)


def place_for(folder: Path, version: int | None) -> Path:
    """Where a model's files go: into its own folder, or into that of one version.

    Raises:
        FileExistsError: the folder is of the other kind; nothing reads one that is of both.
    """
    if version is not None and (folder / MANIFEST_NAME).exists():
        raise FileExistsError(f"{folder} is a model without versions: move its files to {folder / '1'} first")
    if version is None and any(path.is_dir() and VERSION_NAME.fullmatch(path.name) for path in folder.glob("*")):
        raise FileExistsError(f"{folder} holds versions: say which one this is (--version)")
    return folder if version is None else folder / str(version)


def replace_folder(new: Path, target: Path) -> None:
    """Put a copy of a folder in another's place: a kill leaves the old one or the new one, never half of one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    arriving, leaving = (target.with_name(f".{target.name}.{which}") for which in ("new", "old"))
    for leftover in (arriving, leaving):
        shutil.rmtree(leftover, ignore_errors=True)
    shutil.copytree(new, arriving)
    arriving.chmod(0o755)  # temporary folders are private; a service under another user must read this one
    if target.exists():
        target.rename(leaving)
    arriving.rename(target)
    shutil.rmtree(leaving, ignore_errors=True)


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
    GoldenPairs(pairs=()).save(folder / GOLDEN)
    family = _family(recipe)
    fields = family.write_folder(recipe, publication, runs, folder, seed)
    manifest = Manifest(
        id=publication.model_id,
        title=publication.title,
        architecture=recipe.architecture.name,
        golden=GOLDEN,
        limits=Limits(max_tokens=fields.pop("max_tokens")),
        files=files_of(folder) | fields.pop("shared", {}),
        fingerprint="0" * 64,
        training_data=training_data_for(recipe),
        figures=(),
        provenance=_provenance(recipe, runs, seed),
        **fields,
    )
    return family.calibrate(manifest, recipe, runs, folder, seed)


def _family(recipe: Recipe) -> ModuleType:
    """The module that writes the files of the recipe's family: all have the same functions."""
    if isinstance(recipe.objective, TasksConfig):
        return tasks
    return interaction if isinstance(recipe.objective, PairwiseConfig) else siamese


def files_of(folder: Path) -> dict[str, FileEntry]:
    """The manifest's entries for the files that lie in a folder."""
    return {path.name: describe_file(path) for path in sorted(folder.iterdir())}


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


def _golden_pairs(model: PublishedModel, texts: Sequence[tuple[str, str]]) -> GoldenPairs:
    a, b = [pair[0] for pair in texts], [pair[1] for pair in texts]
    scores = model.similarity(a, b) if model.manifest.similarity is not None else None
    labels = model.entailment(a, b) if model.manifest.entailment is not None else None
    classes = None
    if model.manifest.classification is not None:
        classes = list(zip(model.classification(a), model.classification(b), strict=True))
    paraphrase = model.similarity(a, b, "paraphrase") if model.manifest.paraphrase is not None else None
    relevance = model.similarity(a, b, "relevance") if model.manifest.relevance is not None else None
    return GoldenPairs(
        pairs=tuple(
            GoldenPair(
                a=a[i],
                b=b[i],
                raw_score=None if scores is None else float(scores.raw_score[i]),
                score=None if scores is None else float(scores.score[i]),
                probabilities=None if labels is None else cast(dict[EntailmentLabel, float], labels[i]),
                classes=None if classes is None else classes[i],
                paraphrase=None if paraphrase is None else float(paraphrase.score[i]),
                relevance=None if relevance is None else float(relevance.score[i]),
            )
            for i in range(len(a))
        )
    )


def environment() -> dict[str, str]:
    """Versions that can move a number."""
    packages = ("torch", "onnx", "onnxscript", "onnxruntime", "numpy", "scipy", "scikit-learn", "tokenizers")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
