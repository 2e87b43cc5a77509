"""A folder of another library -> `models/<id>/`: read, held against its library, exported, calibrated, described."""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue, TypeAdapter, ValidationError

from contract.golden import GOLDEN_TEXTS, GoldenPairs
from contract.manifest import Figure, Manifest, ModelId, Provenance, TrainingData
from contract.wordpiece import WordPiece
from training.publishing.parity import ParityError
from training.publishing.publish import GOLDEN, environment, files_of, finish, place_for
from training.publishing.runtime import PublishedModel
from training.publishing.texts import texts
from training.words.storage import Storage
from workbench.imports.bert import read_bi_encoder, read_cross_encoder
from workbench.imports.calibration import calibrate_cosine
from workbench.imports.files import ImportRefused, licence_of, read_modules, read_object
from workbench.imports.model import Facts, Floats, ImportedModel, Labelled
from workbench.imports.onnx_encoder import read_onnx
from workbench.imports.static import read_model2vec, read_static

logger = logging.getLogger(__name__)

TOLERANCE = 1e-4  # of an embedding's value or a logit (beyond 1: relative), weights in float32
TEXTS = 400  # that parity is measured on, beside the golden ones
_LONGEST = 100  # tokens of these


@dataclass(frozen=True)
class Parity:
    """How far our answers are from those of the model's own library."""

    library: str  # with its version
    texts: int
    float32: float  # largest difference, of a value or logit, with weights in float32
    stored: float  # the same with weights as they are published
    cosine: float | None  # least cosine of an embedding, as published, with the library's; None: no embeddings

    def sentence(self, storage: Storage) -> str:
        """What the manifest, the card and the command line say."""
        as_stored = f"at most {self.stored:.1e} with {storage} weights"
        cosine = "" if self.cosine is None else f" (cosine at least {self.cosine:.5f})"
        return (
            f"{self.library}, {self.texts} texts: answers differ by at most {self.float32:.1e} with float32 weights, "
            f"{as_stored}{cosine}"
        )


@dataclass(frozen=True)
class Description:
    """What is said of a model, and how it is calibrated and measured, where the folder's own facts do not do."""

    title: str | None = None
    architecture: str | None = None
    training_data: tuple[TrainingData, ...] = ()
    figures: Callable[[PublishedModel], Sequence[Figure]] | None = None


@dataclass(frozen=True)
class Imported:
    """What `import_model` did."""

    folder: Path
    parity: Parity | None  # None: the library is not installed
    storage: Storage
    calibrated: bool
    notes: tuple[str, ...]


def read_model(
    folder: Path,
    drafts: Path,
    *,
    max_tokens: int | None = None,
    head: str = "similarity",
    labels: Sequence[str] | None = None,
) -> ImportedModel:
    """Find out what a folder holds, and read it.

    Args:
        folder: of sentence-transformers, model2vec, or with an ONNX encoder.
        drafts: a folder for files made on the way.
        max_tokens: of a text, fewer than the folder says.
        head: what a cross-encoder's one output means: similarity or relevance.
        labels: names of a cross-encoder's three outputs, where the folder names none.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    if not folder.is_dir():
        raise ImportRefused(f"{folder}: no such folder")
    config = read_object(folder / "config.json") if (folder / "config.json").is_file() else {}
    modules = [name for name, _ in read_modules(folder)] if (folder / "modules.json").is_file() else []
    classifier = config.get("architectures") == ["BertForSequenceClassification"]
    graphs = [path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()]
    if config.get("model_type") == "model2vec":
        return read_model2vec(folder, drafts, max_tokens)
    if modules[:1] == ["StaticEmbedding"]:
        return read_static(folder, drafts, max_tokens)
    if graphs and not any((folder / name).exists() for name in ("model.safetensors", "pytorch_model.bin")):
        return read_onnx(folder, drafts, max_tokens)
    if classifier:
        return read_cross_encoder(folder, drafts, max_tokens, head, labels)
    if modules:
        return read_bi_encoder(folder, drafts, max_tokens)
    if config:
        named = config.get("architectures") or config.get("model_type")
        raise ImportRefused(
            f"{folder / 'config.json'}: architectures is {named!r} and there is no modules.json that says how its "
            "states are pooled; taken are BertForSequenceClassification, or a folder that sentence-transformers saved"
        )
    raise ImportRefused(f"{folder}: no modules.json, config.json or model.onnx")


def import_model(
    source: Path,
    model_id: str,
    models: Path,
    *,
    version: int | None = None,
    storage: Storage | None = None,
    read: Callable[[Path, Path], ImportedModel] = read_model,
    labelled: Callable[[ImportedModel], Labelled] | None = None,
    said: Description | None = None,
    command: str | None = None,
) -> Imported:
    """Publish a model that was trained elsewhere.

    Args:
        source: its folder.
        model_id: id that it gets.
        models: where model folders live.
        version: write `models/<id>/<version>`.
        storage: of its weights; None: the smallest that is faithful, int8 where there is a choice.
        read: how the folder is read.
        labelled: the pairs it is calibrated on; None: its scores are said to be uncalibrated.
        said: what is said of it instead of the folder's own facts.
        command: that makes it again.

    Raises:
        ImportRefused: the folder, the id or the storage cannot be taken; names the file and the field.
        ParityError: it does not compute what its library does; nothing is published.
        FileExistsError: the model has versions where none is given, or the other way round.
    """
    said = said or Description()
    try:
        TypeAdapter(ModelId).validate_python(model_id)
    except ValidationError as error:
        raise ImportRefused(
            f"--id {model_id}: small letters, digits and hyphens, at most 64, a letter first"
        ) from error
    target = place_for(models / model_id, version)
    with tempfile.TemporaryDirectory(prefix="import-") as temporary:
        drafts, folder = Path(temporary) / "drafts", Path(temporary) / model_id
        if model_id == "drafts":
            drafts = Path(temporary) / "read"
        drafts.mkdir()
        folder.mkdir()
        model = read(source, drafts)
        kept = storage or model.storages[0]
        if kept not in model.storages:
            raise ImportRefused(f"--storage {kept}: this model is stored as {' or '.join(model.storages)}")
        pairs = labelled(model) if labelled is not None else None
        parity = measure_parity(model, kept)
        fields = model.write(folder, model_id, kept, pairs)
        facts = model.facts
        manifest = _assemble(folder, fields, facts, source, said, command, kept, pairs, parity)
        if pairs is not None and manifest.similarity is not None and manifest.encoder is not None:
            manifest = calibrate_cosine(folder, manifest, pairs)
        measured = said.figures(PublishedModel(folder, manifest)) if said.figures is not None else ()
        finish(folder, manifest, measured, GOLDEN_TEXTS, models, target)
    return Imported(target, parity, kept, pairs is not None, facts.notes)


def measure_parity(model: ImportedModel, storage: Storage) -> Parity | None:
    """Hold a model against its own library; None where that is not installed.

    Raises:
        ParityError: answers with float32 weights differ by more than rounding.
    """
    tokenizer = WordPiece.load(model.tokenizer)
    found = texts(tokenizer, TEXTS, min(model.max_tokens, _LONGEST))
    half = len(found) // 2
    a, b = found[:half], found[half : 2 * half]
    try:
        theirs = model.theirs(a, b)
    except ModuleNotFoundError as error:
        logger.warning("%s is not installed (%s): parity is not checked", model.library, error.name)
        return None
    whole = _differences(model.ours(a, b, "float32"), theirs)
    if not float(whole.max()) <= TOLERANCE:  # NaN fails too
        worst = int(whole.argmax())
        shown = (found[worst] if len(whole) == 2 * half else f"{a[worst]} | {b[worst]}")[:200]
        raise ParityError(
            f"differs from {model.library} by {whole.max():.1e}, allowed {TOLERANCE:.0e}, on {shown!r}: the folder has "
            "a setting that is not read here"
        )
    ours = model.ours(a, b, storage)
    cosine = None
    if len(ours) == 2 * half:
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
        known = lengths > 0
        cosine = float(((ours * theirs).sum(axis=1)[known] / lengths[known]).min())
    name = _with_version(model.library)
    return Parity(name, 2 * half, float(whole.max()), float(_differences(ours, theirs).max()), cosine)


def _differences(ours: Floats, theirs: Floats) -> Floats:
    """The largest of each row; that of values beyond 1 relative to them."""
    if ours.shape != theirs.shape:
        raise ParityError(f"answers have shape {ours.shape}, the library's {theirs.shape}")
    return np.asarray((np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))).max(axis=1))


def _with_version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def _assemble(
    folder: Path,
    fields: dict[str, Any],
    facts: Facts,
    source: Path,
    said: Description,
    command: str | None,
    storage: Storage,
    labelled: Labelled | None,
    parity: Parity | None,
) -> Manifest:
    """The manifest of what was written into a folder; `finish` adds what it still lacks."""
    name = source.resolve().name
    calibration = (
        "none: scores are uncalibrated" if labelled is None else f"{labelled.name}, {len(labelled.pairs)} pairs"
    )
    settings: dict[str, JsonValue] = {
        "imported": name,
        "storage": storage,
        "architecture": facts.settings,
        "calibration": calibration,
        "parity": "not checked: its library is not installed" if parity is None else parity.sentence(storage),
        "notes": list(facts.notes),
    }
    data = [
        TrainingData(
            name=name,
            use="its weights and tokenizer; what they were trained on is for its authors to say",
            rows=0,
            licence=licence_of(source),
            source="a local folder",
        )
    ]
    if labelled is not None:
        data.append(
            TrainingData(
                name=labelled.name,
                use="calibration of the score",
                rows=len(labelled.pairs),
                licence="not stated",
                source="a local file",
            )
        )
    uncalibrated = "; its scores are uncalibrated" if labelled is None else ""
    return assemble(
        folder,
        fields,
        title=said.title or f"{name}: {facts.what}, imported{uncalibrated}",
        architecture=said.architecture or facts.architecture,
        training_data=said.training_data or tuple(data),
        provenance=Provenance(
            created=datetime.now(UTC).date(),
            recipe=settings,
            commands=(command or f"python -m workbench import {name} --id {folder.name} --storage {storage}",),
            seed=0,
            environment=environment(),
        ),
    )


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
