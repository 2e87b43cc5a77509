"""Toy models trained for a moment and published: everything the real road does, without its corpora."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch

from contract.golden import GoldenPair, GoldenPairs
from contract.manifest import (
    EntailmentTask,
    Limits,
    Manifest,
    Provenance,
    SimilarityTask,
    TrainingData,
    describe_file,
)
from contract.measures import Floats
from tests import toys
from training.architectures.models import SiameseModel
from training.objectives.supervised import LABELS, LabelledPairs, SupervisedConfig, SupervisedObjective
from training.publishing.calibrate import fit_centred_isotonic
from training.publishing.export import export_encoder, export_head
from training.publishing.parity import check_encoder, check_head
from training.publishing.runtime import PublishedModel
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs.loop import train
from training.words.tables import WordTable

torch.set_num_threads(1)

CLASSES = (1.0, 2.0, 3.0, 4.0, 5.0)
TEXTS = [
    *(text for pair in toys.RATED for text in (pair.a, pair.b)),
    "Mow, the DOG!",
    "\u732b\u304c \U0001f600",  # buckets only
    "the man " * 20,  # cut at the limit
    "small",
]


@dataclass(frozen=True)
class Toy:
    """A trained module and the folder it was published into."""

    module: SiameseModel
    folder: Path


def publish(module: SiameseModel, folder: Path, table: WordTable) -> Toy:
    """Export, prove, calibrate, ask the golden pairs, write the manifest."""
    folder.mkdir()
    table.tokenizer.save(folder / "tokenizer.json")
    export_encoder(module.encoder, folder / "encoder.onnx", folder.name)
    check_encoder(folder / "encoder.onnx", module.encoder, len(table.tokenizer))
    for name, head in module.heads.items():
        export_head(head, toys.DIM, folder / f"{name}.onnx", folder.name)
        check_head(folder / f"{name}.onnx", head, toys.DIM)
    GoldenPairs(pairs=()).save(folder / "golden.json")
    if module.heads:
        similarity = SimilarityTask(
            graph="similarity.onnx", classes=CLASSES, raw_range=(1, 5), label_scale=(1, 5), symmetric=True
        )
    else:
        similarity = SimilarityTask(comparison="cosine", raw_range=(-1, 1), label_scale=(0, 5), symmetric=True)
    entailment = EntailmentTask(graph="entailment.onnx", labels=LABELS) if module.heads else None
    manifest = Manifest(
        id=folder.name,
        title="A toy",
        architecture="word_averaging",
        family="siamese",
        dim=toys.DIM,
        encoder="encoder.onnx",
        tokenizer="tokenizer.json",
        golden="golden.json",
        files={path.name: describe_file(path) for path in folder.iterdir()},
        fingerprint="0" * 64,
        limits=Limits(max_tokens=toys.MAX_TOKENS),
        similarity=similarity,
        entailment=entailment,
        training_data=(TrainingData(name="toys", use="all", rows=8, licence="CC0-1.0", source="tests"),),
        figures=(),
        provenance=Provenance(created=date(2025, 1, 2), recipe={}, commands=("none",), seed=0, environment={}),
    )
    if not module.heads:
        fit = fit_centred_isotonic(cosines(folder, manifest), RATINGS, raw_range=(-1, 1), target_range=(0, 5))
        manifest = manifest.model_copy(update={"similarity": similarity.model_copy(update={"calibration": fit})})
    golden(PublishedModel(folder, manifest)).save(folder / "golden.json")
    manifest = manifest.model_copy(update={"files": {p.name: describe_file(p) for p in folder.iterdir()}})
    manifest = manifest.model_copy(update={"fingerprint": manifest.expected_fingerprint()})
    manifest.save(folder)
    return Toy(module, folder)


RATINGS = np.array([pair.target for pair in toys.RATED], dtype=np.float64)


def cosines(folder: Path, manifest: Manifest) -> Floats:
    return PublishedModel(folder, manifest).similarity(*sides(toys.RATED)).raw_score


def sides(pairs: Sequence[toys.Pair]) -> tuple[list[str], list[str]]:
    return [pair.a for pair in pairs], [pair.b for pair in pairs]


def golden(model: PublishedModel) -> GoldenPairs:
    a, b = sides(toys.RATED)
    found = model.similarity(a, b)
    labels = model.entailment(a, b) if model.manifest.entailment else [None] * len(a)
    return GoldenPairs(
        pairs=tuple(
            GoldenPair(a=x, b=y, raw_score=raw, score=score, probabilities=label)  # type: ignore[arg-type]
            for x, y, raw, score, label in zip(a, b, found.raw_score, found.score, labels, strict=True)
        )
    )


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@pytest.fixture(scope="session")
def graded(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """Ratings and labels, each from its own head."""
    pairs = LabelledPairs(toys.RATED, toys.tokenizer(), toys.MAX_TOKENS)
    task = SupervisedObjective(
        toys.model(heads=True), pairs, pairs, SupervisedConfig(entailment_weight=1.0), batch_size=4, seed=0
    )
    optimiser = OptimiserConfig(learning_rate=0.03, embedding_learning_rate=0.03)
    train(task, optimiser, Schedule(epochs=20, batch_size=4), tmp_path_factory.mktemp("run"), seed=0)
    return publish(task.model.eval(), models / "toy-graded", toys.table())


@pytest.fixture(scope="session")
def cosine(models: Path) -> Toy:
    """The cosine of averaged words, calibrated."""
    return publish(toys.model(seed=3).eval(), models / "toy-cosine", toys.table(3))
