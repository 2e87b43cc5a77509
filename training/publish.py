"""A trained run -> `models/<id>/`, or one version in it: calibrated, exported, proved equal, measured, described.

Nothing is written under `models/` unless every step before has passed; a published folder is replaced whole.
"""

import copy
import logging
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy as np
import torch

from contract.calibration import Calibration
from contract.golden import GoldenPair, GoldenPairs
from contract.manifest import (
    MANIFEST_NAME,
    VERSION_NAME,
    EntailmentLabel,
    EntailmentTask,
    Figure,
    FileEntry,
    Limits,
    Manifest,
    Provenance,
    SimilarityTask,
    describe_file,
)
from training.afterwards import OUT_OF_FOLD_NAME
from training.architectures import WordAveragingConfig
from training.calibrate import Floats, fit_centred_isotonic, fit_local_linear
from training.card import write_card
from training.corpora import sick, sst, sts, sts_split
from training.corpora.pairwise import Corpus
from training.export import export_encoder, export_head
from training.figures import FigureFile, pairwise_figures, sick_figures, split_figures, test_parts, transfer_figures
from training.golden import GOLDEN_TEXTS
from training.interaction_folder import hangs_on_rounding, write_folder
from training.models import SiameseModel, output_dim
from training.objectives.manhattan import ManhattanConfig
from training.objectives.pairwise import PairwiseConfig
from training.objectives.sentiment import LabelledSentences, SentimentConfig, sentiment_figures
from training.objectives.supervised import LABELS, SupervisedConfig
from training.parity import check_encoder, check_head
from training.provenance import commands_for, training_data_for
from training.recipe import CorpusPairs, Publication, Recipe, RecipeError, STSSplitPairs, TeacherAnswers
from training.run import load_interaction_run, load_run, run_folder, supervised_pairs, training_texts
from training.runtime import PublishedModel
from training.shared import alone, install, sweep
from training.storage import Storage, shrink, stored
from training.tables import WordTable

logger = logging.getLogger(__name__)

ENCODER, SIMILARITY, ENTAILMENT = "encoder.onnx", "similarity.onnx", "entailment.onnx"
TOKENIZER, GOLDEN, CARD = "tokenizer.json", "golden.json", "README.md"
STS_SCALE = (0.0, 5.0)


def publish(recipe: Recipe, runs: Path, models: Path, figures: Path, seed: int, version: int | None = None) -> Path:
    """Publish a trained run; returns its folder.

    Args:
        recipe: what was trained.
        runs: where its run lies.
        models: where model folders live.
        figures: where measured figures go.
        seed: of the run.
        version: write `models/<id>/<version>`, for a model with versions.

    Raises:
        RecipeError: the recipe has no publication, or its corpus no test part.
        FileExistsError: the model has versions where none is given, or the other way round.
        RunMissing: it was not trained.
        ParityError, GraphMismatchError: the export does not compute what was trained; nothing is published.
    """
    publication = recipe.publication
    if publication is None:
        raise RecipeError(f"recipe {recipe.name!r} is an experiment, it has no publication")
    target = place_for(models / publication.model_id, version)
    with tempfile.TemporaryDirectory(prefix="publish-") as temporary:
        folder = Path(temporary) / publication.model_id
        folder.mkdir()
        manifest = _assemble(recipe, publication, runs, folder, seed)
        measured = _measure(PublishedModel(folder, manifest), recipe)
        _figure_file(recipe, seed, publication.storage, "publish", measured).save(figures)
        golden = _golden_pairs(PublishedModel(folder, manifest), _golden_texts(recipe, runs, seed, manifest))
        golden.save(folder / GOLDEN)
        shared = {name: entry for name, entry in manifest.files.items() if entry.shared}
        manifest = manifest.model_copy(update={"figures": tuple(measured), "files": _files(folder) | shared})
        manifest = manifest.model_copy(update={"fingerprint": manifest.expected_fingerprint()})
        manifest.save(folder)
        write_card(manifest, folder / CARD)
        Manifest.load(folder).verify(folder)
        with alone(models):
            # Shared files are there before the model that names them, and go after the last one that did.
            install(folder.parent, models)
            replace_folder(folder, target)
            sweep(models)
    return target


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

    Sentiment is no task of the service, so there is no graph for it: its model is measured as it was trained.

    Raises:
        RecipeError: sentiment with words that are not float32, or a corpus without a test part.
    """
    if isinstance(recipe.objective, SentimentConfig):
        if storage != "float32":
            raise RecipeError(f"a sentiment run is measured with float32 words, got {storage!r}")
        return _figure_file(recipe, seed, storage, "evaluate --storage float32", _sentiment(recipe, runs, seed)).save(
            figures
        )
    if isinstance(recipe.objective, PairwiseConfig):
        test_parts(_corpus(recipe))  # before the work, not after it
    publication = recipe.publication or Publication(recipe.name, recipe.name)
    publication = replace(publication, model_id=recipe.name, title=recipe.name, storage=storage)
    with tempfile.TemporaryDirectory(prefix="evaluate-") as temporary:
        folder = Path(temporary) / "model"
        folder.mkdir()
        manifest = _assemble(recipe, publication, runs, folder, seed)
        measured = _measure(PublishedModel(folder, manifest), recipe)
    return _figure_file(recipe, seed, storage, f"evaluate --storage {storage}", measured).save(figures)


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


def _sentiment(recipe: Recipe, runs: Path, seed: int) -> list[Figure]:
    model, table = load_run(recipe, runs, seed)
    test = LabelledSentences(sst.read("test"), table.tokenizer, recipe.max_tokens)
    measured = sentiment_figures(model.eval(), test)
    return [
        Figure(task="sentiment", corpus="SST", split="test", metric=metric, value=round(value, 6), rows=len(test))
        for metric, value in measured.items()
    ]


def _measure(model: PublishedModel, recipe: Recipe) -> list[Figure]:
    if isinstance(recipe.objective, PairwiseConfig):
        return pairwise_figures(model, _corpus(recipe))
    if isinstance(recipe.data, STSSplitPairs):
        return split_figures(model, sts_split.read(recipe.data.seed).test)
    supervised = isinstance(recipe.objective, SupervisedConfig | ManhattanConfig)
    return sick_figures(model) if supervised else transfer_figures(model)


def _corpus(recipe: Recipe) -> Corpus:
    """Where an interaction model is measured; one that only a teacher taught, where its epoch was chosen."""
    match recipe.data:
        case CorpusPairs() as data:
            return data.corpus
        case TeacherAnswers() as answers:
            return answers.selection
        case _:
            return "sick"


def _assemble(recipe: Recipe, publication: Publication, runs: Path, folder: Path, seed: int) -> Manifest:
    """Export everything into a folder; the manifest still lacks its figures and golden pairs."""
    GoldenPairs(pairs=()).save(folder / GOLDEN)
    if isinstance(recipe.objective, PairwiseConfig):
        return _assemble_interaction(recipe, publication, runs, folder, seed)
    model, table = load_run(recipe, runs, seed)
    table = WordTable(table.tokenizer, model.embedding.weight.detach().numpy())
    if publication.keep_words is not None:
        table = shrink(table, publication.keep_words, training_texts(recipe))
    table.tokenizer.save(folder / TOKENIZER)
    encoder = copy.deepcopy(model.encoder)
    encoder.embedding = stored(torch.from_numpy(table.rows), publication.storage)
    export_encoder(encoder, folder / ENCODER, publication.model_id)
    difference = check_encoder(folder / ENCODER, encoder, len(table.tokenizer))
    dim = output_dim(model.encoder)  # not the width of the words: an encoder may project
    for task, name in (("similarity", SIMILARITY), ("entailment", ENTAILMENT)):
        if task in model.heads:
            export_head(model.heads[task], dim, folder / name, publication.model_id)
            difference = max(difference, check_head(folder / name, model.heads[task], dim))
    logger.info("%s: graphs equal their modules to %.1e", publication.model_id, difference)
    manifest = Manifest(
        id=publication.model_id,
        title=publication.title,
        architecture=recipe.architecture.name,
        family="siamese",
        dim=dim,
        encoder=ENCODER,
        tokenizer=TOKENIZER,
        golden=GOLDEN,
        files=_files(folder),
        fingerprint="0" * 64,
        limits=Limits(max_tokens=publication.max_tokens),
        similarity=_similarity_task(recipe, model),
        entailment=EntailmentTask(graph=ENTAILMENT, labels=LABELS) if "entailment" in model.heads else None,
        additive=isinstance(recipe.architecture, WordAveragingConfig),
        training_data=training_data_for(recipe),
        figures=(),
        provenance=_provenance(recipe, seed),
    )
    if manifest.similarity is not None and manifest.similarity.comparison is not None:
        raw, gold = _calibration_points(recipe, PublishedModel(folder, manifest), run_folder(runs, recipe, seed))
        calibrated = _calibrated(manifest.similarity, raw, gold)
        manifest = manifest.model_copy(update={"similarity": calibrated})
    return manifest


def _assemble_interaction(recipe: Recipe, publication: Publication, runs: Path, folder: Path, seed: int) -> Manifest:
    written = write_folder(recipe, publication, *load_interaction_run(recipe, runs, seed), folder)
    return Manifest(
        id=publication.model_id,
        title=publication.title,
        architecture=recipe.architecture.name,
        family="interaction",
        tokenizer=TOKENIZER,
        golden=GOLDEN,
        files=_files(folder) | written.shared,
        fingerprint="0" * 64,
        limits=Limits(max_tokens=written.max_tokens),
        similarity=written.similarity,
        explanation=written.explanation,
        tensors=written.tensors,
        training_data=training_data_for(recipe),
        figures=(),
        provenance=_provenance(recipe, seed),
    )


def _files(folder: Path) -> dict[str, FileEntry]:
    return {path.name: describe_file(path) for path in sorted(folder.iterdir())}


def _provenance(recipe: Recipe, seed: int) -> Provenance:
    return Provenance(
        created=datetime.now(UTC).date(),
        recipe=recipe.as_json(),
        commands=commands_for(recipe, seed),
        seed=seed,
        environment=_environment(),
    )


def _similarity_task(recipe: Recipe, model: SiameseModel) -> SimilarityTask | None:
    if isinstance(recipe.objective, ManhattanConfig):
        scale = recipe.objective.scale
        return SimilarityTask(comparison="exp_l1", raw_range=(0.0, 1.0), label_scale=scale, symmetric=True)
    if "similarity" in model.heads:
        assert isinstance(recipe.objective, SupervisedConfig)
        classes = recipe.objective.classes
        assert classes is not None
        scale = (classes[0], classes[-1])
        return SimilarityTask(graph=SIMILARITY, classes=classes, raw_range=scale, label_scale=scale, symmetric=True)
    if model.heads:
        return None
    return SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), label_scale=STS_SCALE, symmetric=True)


def _calibration_points(recipe: Recipe, model: PublishedModel, run: Path) -> tuple[Floats, Floats]:
    """Raw scores and ratings to fit on: of STS 2016 for a cosine, for MaLSTM of what its recipe says."""
    config = recipe.objective
    if isinstance(config, ManhattanConfig) and config.calibrate_on == "out-of-fold":
        with np.load(run / OUT_OF_FOLD_NAME, allow_pickle=False) as scores:
            return scores["g"].astype(np.float64), scores["rating"].astype(np.float64)
    if isinstance(config, ManhattanConfig):
        pairs = supervised_pairs() if config.calibrate_on == "train" else sick.read("dev")
    else:
        pairs = [pair for rated in sts.read_year("2016-test").values() for pair in rated]
    raw = model.similarity([p.a for p in pairs], [p.b for p in pairs]).raw_score
    return raw, np.array([p.target for p in pairs], dtype=np.float64)


def _calibrated(task: SimilarityTask, raw: Floats, gold: Floats) -> SimilarityTask:
    """Raw score -> expected rating: monotone for a cosine, MaLSTM's local-linear regression for exp(-L1)."""
    scale = task.label_scale
    assert scale is not None  # both comparisons have one
    if task.comparison == "cosine":
        fit: Calibration = fit_centred_isotonic(raw, gold, raw_range=task.raw_range, target_range=scale)
    else:
        fit = fit_local_linear(raw, gold, target_range=scale)
    return task.model_copy(update={"calibration": fit})


def _golden_texts(recipe: Recipe, runs: Path, seed: int, manifest: Manifest) -> list[tuple[str, str]]:
    """The golden texts, but those whose answer hangs on rounding: on another machine it may honestly differ."""
    if manifest.family == "siamese":
        return list(GOLDEN_TEXTS)
    model, table = load_interaction_run(recipe, runs, seed)
    limit = manifest.limits.max_tokens
    return [texts for texts in GOLDEN_TEXTS if not hangs_on_rounding(model, table.tokenizer, limit, texts)]


def _golden_pairs(model: PublishedModel, texts: Sequence[tuple[str, str]]) -> GoldenPairs:
    a, b = [pair[0] for pair in texts], [pair[1] for pair in texts]
    scores = model.similarity(a, b) if model.manifest.similarity is not None else None
    labels = model.entailment(a, b) if model.manifest.entailment is not None else None
    return GoldenPairs(
        pairs=tuple(
            GoldenPair(
                a=a[i],
                b=b[i],
                raw_score=None if scores is None else float(scores.raw_score[i]),
                score=None if scores is None else float(scores.score[i]),
                probabilities=None if labels is None else cast(dict[EntailmentLabel, float], labels[i]),
            )
            for i in range(len(a))
        )
    )


def _environment() -> dict[str, str]:
    packages = ("torch", "onnx", "onnxscript", "onnxruntime", "numpy", "scipy", "scikit-learn", "tokenizers")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
