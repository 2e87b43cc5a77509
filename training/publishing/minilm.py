"""all-MiniLM-L6-v2 as it was published -> `models/minilm/`: no run of ours, only its weights in int8."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from contract.golden import GOLDEN_TEXTS, GoldenPairs
from contract.manifest import Manifest, Provenance, TrainingData
from training.architectures.transformer import MiniLM, MiniLMConfig, load_weights
from training.corpora.readers import sts
from training.publishing.calibrate import fit_centred_isotonic
from training.publishing.families.siamese import STS_SCALE
from training.publishing.families.transformer import write_encoder
from training.publishing.publish import GOLDEN, environment, files_of, finish, place_for
from training.publishing.runtime import PublishedModel
from training.sources.credits import TEACHER, entry
from training.sources.figures import pairwise_figures, transfer_figures


def assemble(
    folder: Path,
    fields: Mapping[str, Any],
    *,
    title: str,
    architecture: str,
    training_data: Sequence[TrainingData],
    provenance: Provenance,
) -> Manifest:
    """The manifest of what was written into a folder, whose name is the model's id; `finish` adds what it still lacks.

    Args:
        folder: with the files of `write_encoder` or `write_cross_encoder`.
        fields: what that returned.
        title: of the model, for people.
        architecture: its name.
        training_data: every corpus that moved a weight or a choice.
        provenance: how to make it again.
    """
    GoldenPairs(pairs=()).save(folder / GOLDEN)
    rest = dict(fields)
    return Manifest(
        id=folder.name,
        title=title,
        architecture=architecture,
        golden=GOLDEN,
        files=files_of(folder) | rest.pop("shared"),
        fingerprint="0" * 64,
        training_data=tuple(training_data),
        figures=(),
        provenance=provenance,
        **rest,
    )


def publish_minilm(source: Path, models: Path, version: int | None = None) -> Path:
    """Publish all-MiniLM-L6-v2 as `minilm`, the score calibrated on STS 2016 as that of our own encoders.

    Args:
        source: its folder, with `model.safetensors` and `tokenizer.json`.
        models: where model folders live.
        version: write `models/minilm/<version>`.

    Raises:
        FileNotFoundError: the folder lacks a file.
        CorpusMissing: a test set is not in SEMBLANCE_DATA.
        ParityError: the graph does not compute what the model does; nothing is published.
    """
    model = MiniLM(MiniLMConfig())
    load_weights(model.bert, source)
    target = place_for(models / "minilm", version)
    with tempfile.TemporaryDirectory(prefix="publish-") as temporary:
        folder = Path(temporary) / "minilm"
        folder.mkdir()
        fields = write_encoder(model, source / "tokenizer.json", folder, "minilm")
        rated = [pair for pairs in sts.read_year("2016-test").values() for pair in pairs]
        manifest = assemble(
            folder,
            fields,
            title="all-MiniLM-L6-v2 as it was published: a transformer of 22.7 million weights, here in int8",
            architecture=model.config.name,
            training_data=(
                TEACHER.model_copy(update={"use": "its weights and tokenizer, unchanged but for int8"}),
                entry("sts-2016", "calibration of the score", len(rated)),
            ),
            provenance=_provenance(model),
        )
        published = PublishedModel(folder, manifest)
        raw = published.similarity([p.a for p in rated], [p.b for p in rated]).raw_score
        gold = np.array([p.target for p in rated], dtype=np.float64)
        assert manifest.similarity is not None
        fit = fit_centred_isotonic(raw, gold, raw_range=manifest.similarity.raw_range, target_range=STS_SCALE)
        similarity = manifest.similarity.model_copy(update={"calibration": fit})
        manifest = manifest.model_copy(update={"similarity": similarity})
        published = PublishedModel(folder, manifest)
        measured = transfer_figures(published)
        measured += [*pairwise_figures(published, "wikiqa"), *pairwise_figures(published, "trecqa")]
        finish(folder, manifest, measured, GOLDEN_TEXTS, models, target)
    return target


def _provenance(model: MiniLM) -> Provenance:
    return Provenance(
        created=datetime.now(UTC).date(),
        recipe={"weights": "int8 for each output, activations float32", "architecture": asdict(model.config)},
        commands=("python -m training publish-minilm",),
        seed=0,
        environment=environment(),
    )
