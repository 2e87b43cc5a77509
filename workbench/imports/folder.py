"""Import another library's model to `models/<id>/`: read, export, check parity with the library, calibrate, publish."""

import logging
import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue

from core.errors import ManifestError
from core.golden import GOLDEN_TEXTS
from core.manifest import MANIFEST_NAME, MAX_MODEL_BYTES, Manifest, Provenance, TrainingData
from training.publish.folders import assemble, environment, finish
from training.publish.graphs import ParityError
from training.publish.runtime import PublishedModel
from training.publish.texts import texts
from workbench.imports.calibration import calibrated, sample
from workbench.imports.described import check_code
from workbench.imports.files import ImportRefused, library_errors, read_stated, static_kind
from workbench.imports.model import (
    COSINE,
    NO_OPTIONS,
    CalibrationPairs,
    Floats,
    ImportedModel,
    ImportFacts,
    ImportOptions,
    Storage,
    check_id,
    in_roles,
)
from workbench.imports.sources import Source, open_source
from workbench.imports.static import read_model2vec, read_static
from workbench.imports.transformer import read_transformer

logger = logging.getLogger(__name__)

TOLERANCE = 1e-4  # largest difference of a value or logit (above 1: relative), with float32 weights
LEAST_COSINE = 0.95  # of answers with fewer bytes a weight and those in float32
TEXTS = 100  # that parity is measured on, beside the golden ones
_LONGEST, _CUT = 60, 2048  # tokens of these, and of two that are longer than the model reads
_ALONE_SAMPLE = 20  # texts that are run in a batch of one as well


@dataclass(frozen=True)
class Parity:
    """How far our answers are from those of the model's own library."""

    library: str  # with its version
    texts: int
    max_difference_float32: float  # of a value or logit, with float32 weights
    max_difference_stored: float  # with weights as they are published
    cosine: float | None  # least cosine of an embedding, as published, with the library's; None: no embeddings

    def describe(self, storage: Storage) -> str:
        """What the manifest, the card and the command line say."""
        as_stored = "" if storage == "float32" else f", at most {self.max_difference_stored:.1e} with {storage} weights"
        cosine = "" if self.cosine is None else f" (cosine at least {self.cosine:.5f})"
        largest = f"{self.max_difference_float32:.1e} with float32 weights{as_stored}"
        return f"{self.library}, {self.texts} texts: answers differ by at most {largest}{cosine}"


@dataclass(frozen=True)
class ImportResult:
    """What `import_model` wrote, and how it was checked."""

    folder: Path
    parity: Parity | None  # None: the library is not installed
    storage: Storage
    calibration: str  # on what
    notes: tuple[str, ...]


def read_model(folder: Path, options: ImportOptions) -> ImportedModel:
    """Find out what a folder holds, and read it: a table of rows, or a transformer (`read_transformer`).

    Raises:
        ImportRefused: it holds no model that we support; names the file and the field.
    """
    with library_errors(folder):
        check_code(folder)
        if (kind := static_kind(folder)) is None:
            return read_transformer(folder, options)
        return (read_model2vec if kind == "model2vec" else read_static)(folder, options)


def import_model(
    source: str | Path,
    model_id: str | None,
    models: Path,
    *,
    storage: Storage = "float32",
    options: ImportOptions = NO_OPTIONS,
    labelled: Callable[[ImportedModel], CalibrationPairs] | None = None,
    arguments: Sequence[str] = (),
    overwrite: bool = False,
) -> ImportResult:
    """Publish a model that was trained elsewhere.

    Args:
        source: its folder, or its name on a hub, as in `sources.open_source`.
        model_id: id that it gets; None: made of its name.
        models: where model folders live.
        storage: of its weights.
        options: what the folder does not say, or what is wanted otherwise.
        labelled: makes the calibration pairs of the model once it is read; None: a cosine is calibrated on pairs of
            this package, other scores are not.
        arguments: of the command that makes it again, beside source and id; the manifest records it.
        overwrite: replace whatever has that id in `models`; else only an earlier import of the same source.

    Raises:
        ImportRefused: the source, the id or the storage cannot be taken; names the file and the field.
        ParityError: it does not compute what its library does; nothing is published.
    """
    chosen_id = model_id if model_id is not None else id_of(source)
    if not chosen_id:
        raise ImportRefused(f"{source}: no id can be made of the name: give --id")
    check_id(chosen_id, models, ImportRefused)
    if not all(re.fullmatch("[a-z]{2,3}", each) for each in options.languages or ()):
        raise ImportRefused(f"--languages {','.join(options.languages or ())}: expected ISO 639 codes, as en,de")
    if Path(source).exists() and Path(source).resolve() == (models / chosen_id).resolve():
        raise ImportRefused(f"{source}: the model would replace its own source: give --id, or another --models")
    with open_source(source, options.graph) as found:
        if not overwrite:
            _check_free(models / chosen_id, found)
        command = shlex.join(["semblance", "import", found.name, "--id", chosen_id, *arguments])
        return _publish(found, chosen_id, models, storage, options, labelled, command)


def id_of(source: str | Path) -> str:
    """The id of a model that is given none: the name of its folder, or on its hub, in small letters and hyphens."""
    local = isinstance(source, Path) or Path(source).is_dir()
    name = Path(source).resolve().name if local else Path(str(source).partition("@")[0]).name
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64]


def _check_free(target: Path, source: Source) -> None:
    """Whether nothing is in the model's place, or an earlier import of the same source.

    Raises:
        ImportRefused: it has something else, which would be lost.
    """
    if not any(target.glob("*")):
        return
    what = "no model"
    if (target / MANIFEST_NAME).is_file():
        new = source.recorded
        try:
            there = Manifest.load(target)
        except ManifestError as error:
            raise ImportRefused(f"{error}: --overwrite replaces it, or give this one another --id") from error
        before, folder = there.provenance.recipe, new.get("folder")
        same_hub = (there.origin and there.origin.hub) == (source.origin and source.origin.hub)
        if same_hub and before.get("imported") == new["imported"] and before.get("folder", folder) == folder:
            return  # what an earlier version imported has the folder's name alone
        what = f"another model ({there.title})"
    raise ImportRefused(f"{target} has {what}: give this one an id of its own (--id), or replace that (--overwrite)")


def _publish(
    source: Source,
    model_id: str,
    models: Path,
    storage: Storage,
    options: ImportOptions,
    labelled: Callable[[ImportedModel], CalibrationPairs] | None,
    command: str,
) -> ImportResult:
    target = models / model_id
    with tempfile.TemporaryDirectory(prefix="import-") as temporary:
        folders = {name: Path(temporary) / name / model_id for name in ("float32", "float16", "int8")}
        for folder in folders.values():
            folder.mkdir(parents=True)
        model = read_model(source.folder, options)
        if labelled is not None and model.facts.architecture == "transformer_classifier":
            raise ImportRefused("--pairs: a classifier of single texts is not calibrated on pairs")
        pairs = labelled(model) if labelled is not None else None

        def write_as(stored: Storage) -> tuple[Path, Manifest]:
            nonlocal pairs
            folder = folders[stored]
            fields = model.write(folder, model_id, stored)
            if pairs is None and fields.get("similarity") == COSINE:  # an uncalibrated cosine is no score
                pairs = sample()
            size = sum(path.stat().st_size for path in folder.iterdir())
            if stored == storage and size > MAX_MODEL_BYTES:
                said = f"{source.name}: {size:,} bytes of {stored} weights, the limit is {MAX_MODEL_BYTES:,}"
                raise ImportRefused(f"{said}{'' if stored == 'int8' else ': give --int8'}")
            return folder, _assemble(folder, fields, model.facts, source, options, command, stored, pairs)

        folder, manifest = write_as("float32")
        model_float32 = PublishedModel(folder, manifest)
        found = _texts(model_float32)
        ours, reference = answers(model_float32, *found), None
        try:
            with library_errors(source.folder):
                reference = model.library_answers(*found)
        except ModuleNotFoundError as error:
            logger.warning("%s is not installed (%s): parity is not checked", model.library, error.name)
        else:
            _check(ours, reference, found, model.library, manifest.limits.max_tokens)
        _check_alone(model_float32, ours, found)
        if storage != "float32":
            folder, manifest = write_as(storage)
        published = ours if storage == "float32" else answers(PublishedModel(folder, manifest), *found)
        if not (least := _least_cosine(published, ours, manifest)) >= LEAST_COSINE:  # NaN fails too
            raise ParityError(f"--{storage} changes answers: their cosine falls to {least:.3f}, allowed {LEAST_COSINE}")
        parity = None if reference is None else _parity(model.library, ours, published, reference, manifest)
        if pairs is not None:
            manifest = calibrated(folder, manifest, pairs)
        said = "not checked: its library is not installed" if parity is None else parity.describe(storage)
        recipe = manifest.provenance.recipe | {"parity": said}
        provenance = manifest.provenance.model_copy(update={"recipe": recipe})
        finish(folder, manifest.model_copy(update={"provenance": provenance}), (), GOLDEN_TEXTS, models, target)
    return ImportResult(target, parity, storage, _calibration(pairs), model.facts.notes)


def answers(model: PublishedModel, a: Sequence[str], b: Sequence[str]) -> Floats:
    """What the graph that reads texts gives for n pairs: embeddings of a and b, in the roles of `in_roles` [2 n, D], or
    its outputs [n, K]."""
    if model.manifest.encoder is None:
        (graph,) = model.manifest.graphs
        return model.outputs(graph, a, b).astype(np.float64)
    made = [model.embed(texts, role) for role, texts in in_roles(a, b) if texts]
    return np.concatenate(made).astype(np.float64)


def _texts(model: PublishedModel) -> tuple[list[str], list[str]]:
    """Texts of the model's vocabulary, with some that are longer than it reads."""
    limit = model.manifest.limits.max_tokens
    try:
        found = texts(model.tokenizer, TEXTS, min(limit, _LONGEST))
    except ValueError as error:
        raise ImportRefused(str(error)) from error
    half = len(found) // 2
    a, b = found[:half], found[half : 2 * half]
    tried = min(limit, _CUT)  # what is cut, and where
    a[0], a[-1], b[1] = ("the cat sat here. " * tried,) * 2 + (" ".join(found * (1 + tried // len(found))),)
    return a, b


def _check(ours: Floats, reference: Floats, found: tuple[list[str], list[str]], library: str, max_tokens: int) -> None:
    differences = _differences(ours, reference)
    allowed = TOLERANCE * max(1.0, max_tokens / _CUT)  # the sum of more tokens is rounded more often
    if not float(differences.max()) <= allowed:  # NaN fails too
        worst = int(differences.argmax())
        a, b = found
        shown = ([*a, *b][worst] if len(differences) == 2 * len(a) else f"{a[worst]} | {b[worst]}")[:200]
        raise ParityError(
            f"differs from {library} by {differences.max():.1e}, allowed {allowed:.0e}, on {shown!r}: the folder has "
            "a setting that is not read here, a prompt that spells a special token, or the family's answers depend on "
            "padding"
        )


def _check_alone(model: PublishedModel, ours: Floats, found: tuple[list[str], list[str]]) -> None:
    """Whether an answer is the same alone and among others."""
    step = max(1, len(found[0]) // 2 // _ALONE_SAMPLE)
    for i in range(len(found[0]) // 2, len(found[0]), step):  # alone it is a query
        alone = answers(model, found[0][i : i + 1], found[1][i : i + 1])
        among = ours[[i, len(found[0]) + i]] if len(ours) == 2 * len(found[0]) else ours[i : i + 1]
        if not (difference := float(_differences(alone, among).max())) <= TOLERANCE:
            raise ParityError(
                f"an answer differs by {difference:.1e} with the other texts of a batch: a graph that rounds "
                "activations (dynamic int8) is not served"
            )


def _parity(library: str, ours: Floats, published: Floats, reference: Floats, manifest: Manifest) -> Parity:
    cosine = None if manifest.encoder is None else _least_cosine(published, reference, manifest)
    float32, stored = (float(_differences(each, reference).max()) for each in (ours, published))
    return Parity(_with_version(library), len(reference), float32, stored, cosine)


def _least_cosine(ours: Floats, reference: Floats, manifest: Manifest) -> float:
    """Of each embedding with the other one; of a graph's outputs, of all together."""
    a, b = (each if manifest.encoder is not None else each.reshape(1, -1) for each in (ours, reference))
    lengths = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
    read = (lengths[0] != 0) | (lengths[1] != 0)  # of one that is lost the cosine is 0
    products = np.maximum(lengths[0] * lengths[1], np.finfo(np.float64).tiny)
    return float(((a * b).sum(axis=1)[read] / products[read]).min(initial=1.0))


def _differences(ours: Floats, reference: Floats) -> Floats:
    """The largest difference of each row: absolute up to a value of 1, relative above."""
    if ours.shape != reference.shape:
        raise ParityError(f"answers have shape {ours.shape}, the library's {reference.shape}")
    return np.asarray((np.abs(ours - reference) / np.maximum(1.0, np.abs(reference))).max(axis=1))


def _calibration(labelled: CalibrationPairs | None) -> str:
    return "none: scores are uncalibrated" if labelled is None else f"on {labelled.name}, {len(labelled.pairs)} pairs"


def _with_version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def _assemble(
    folder: Path,
    fields: dict[str, Any],
    facts: ImportFacts,
    source: Source,
    options: ImportOptions,
    command: str,
    storage: Storage,
    labelled: CalibrationPairs | None,
) -> Manifest:
    """The manifest of what was written into a folder; `finish` adds what it still lacks."""
    stated, origin = read_stated(source.folder), source.origin
    name = source.name if origin is None else origin.name
    settings: dict[str, JsonValue] = {
        **source.recorded,
        "storage": storage,
        "architecture": facts.settings,
        "calibration": _calibration(labelled),
        "notes": list(facts.notes),
    }
    data = [
        TrainingData(
            name=name,
            use="its weights and tokenizer; what they were trained on is for its authors to say",
            rows=0,
            licence=options.licence or stated.licence or "not stated",
            source="a local folder" if origin is None else f"{origin.hub}, revision {origin.revision}",
        )
    ]
    data += [labelled.credit()] if labelled is not None else []
    uncalibrated = "; its scores are uncalibrated" if labelled is None else ""
    return assemble(
        folder,
        fields,
        title=f"{name}: {facts.what}, imported{uncalibrated}",
        architecture=facts.architecture,
        training_data=data,
        provenance=Provenance(
            created=datetime.now(UTC).date(),
            recipe=settings,
            commands=(command,),
            seed=0,
            environment=environment(),
        ),
        languages=options.languages or stated.languages,
        origin=origin,
    )
