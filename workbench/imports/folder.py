"""A model of another library -> `models/<id>/`: read, held against its library, exported, calibrated, described."""

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

from core.golden import GOLDEN_TEXTS
from core.manifest import MANIFEST_NAME, Manifest, Provenance, TrainingData
from training.publish.folders import assemble, environment, finish
from training.publish.graphs import ParityError
from training.publish.runtime import PublishedModel
from training.publish.texts import texts
from workbench.imports.calibration import calibrated, sample
from workbench.imports.files import ImportRefused, read_stated, static_kind
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
)
from workbench.imports.sources import Source, opened
from workbench.imports.static import read_model2vec, read_static
from workbench.imports.transformer import read_transformer

logger = logging.getLogger(__name__)

TOLERANCE = 1e-4  # of an embedding's value or a logit (beyond 1: relative), weights in float32
TEXTS = 100  # that parity is measured on, beside the golden ones
_LONGEST = 60  # tokens of these
_ALONE = 20  # of these are asked alone as well


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
        as_stored = "" if storage == "float32" else f", at most {self.stored:.1e} with {storage} weights"
        cosine = "" if self.cosine is None else f" (cosine at least {self.cosine:.5f})"
        return (
            f"{self.library}, {self.texts} texts: answers differ by at most {self.float32:.1e} with float32 weights"
            f"{as_stored}{cosine}"
        )


@dataclass(frozen=True)
class Imported:
    """What `import_model` wrote, and how it was checked."""

    folder: Path
    parity: Parity | None  # None: the library is not installed
    storage: Storage
    calibration: str  # on what
    notes: tuple[str, ...]


def read_model(folder: Path, options: ImportOptions) -> ImportedModel:
    """Find out what a folder holds, and read it: a table of rows, or a transformer (`read_transformer`).

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    if (kind := static_kind(folder)) is None:
        return read_transformer(folder, options)
    return (read_model2vec if kind == "model2vec" else read_static)(folder, options.max_tokens)


def import_model(
    source: str | Path,
    model_id: str | None,
    models: Path,
    *,
    storage: Storage = "float32",
    options: ImportOptions = NO_OPTIONS,
    labelled: Callable[[ImportedModel], CalibrationPairs] | None = None,
    arguments: Sequence[str] = (),
) -> Imported:
    """Publish a model that was trained elsewhere.

    Args:
        source: its folder, or its name on a hub, as in `sources.opened`.
        model_id: id that it gets; None: made of its name.
        models: where model folders live.
        storage: of its weights.
        options: what the folder does not say, or what is wanted otherwise.
        labelled: the pairs it is calibrated on; None: a cosine on those that come with this package, others not.
        arguments: of the command that makes it again, behind source and id.

    Raises:
        ImportRefused: the source, the id or the storage cannot be taken; names the file and the field.
        ParityError: it does not compute what its library does; nothing is published.
    """
    named = model_id if model_id is not None else id_of(source)
    check_id(named, models, ImportRefused)
    if not all(re.fullmatch("[a-z]{2,3}", each) for each in options.languages or ()):
        raise ImportRefused(f"--languages {','.join(options.languages or ())}: expected ISO 639 codes, as en,de")
    with opened(source, options.graph) as found:
        if model_id is None:
            _check_free(models / named, found)
        command = shlex.join(["semblance", "import", found.name, "--id", named, *arguments])
        return _publish(found, named, models, storage, options, labelled, command)


def id_of(source: str | Path) -> str:
    """The id of a model that is given none: the name of its folder, or on its hub, in small letters and hyphens."""
    local = isinstance(source, Path) or Path(source).is_dir()
    name = Path(source).resolve().name if local else Path(str(source).partition("@")[0]).name
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64]


def _check_free(target: Path, source: Source) -> None:
    """Whether a folder that a model's own name chose is empty, or has that model.

    Raises:
        ImportRefused: it has another one, which would be lost.
    """
    if not (target / MANIFEST_NAME).is_file():
        return
    there = Manifest.load(target).origin
    if (there and there.name) != (source.origin and source.origin.name):
        raise ImportRefused(f"{target} has another model: give this one an id of its own (--id)")


def _publish(
    source: Source,
    model_id: str,
    models: Path,
    storage: Storage,
    options: ImportOptions,
    labelled: Callable[[ImportedModel], CalibrationPairs] | None,
    command: str,
) -> Imported:
    target = models / model_id
    with tempfile.TemporaryDirectory(prefix="import-") as temporary:
        folders = {name: Path(temporary) / name / model_id for name in ("float32", "float16", "int8")}
        for folder in folders.values():
            folder.mkdir(parents=True)
        model = read_model(source.folder, options)
        if labelled is not None and model.facts.architecture == "transformer_classifier":
            raise ImportRefused("--pairs: a classifier of single texts is not calibrated on pairs")
        pairs = labelled(model) if labelled is not None else None

        def written(stored: Storage) -> tuple[Path, Manifest]:
            nonlocal pairs
            folder = folders[stored]
            fields = model.write(folder, model_id, stored)
            if pairs is None and fields.get("similarity") == COSINE:  # which is no score by itself
                pairs = sample()
            return folder, _assemble(folder, fields, model.facts, source, options, command, stored, pairs)

        folder, manifest = written("float32")
        opened = PublishedModel(folder, manifest)
        found = _texts(opened)
        whole, theirs = answers(opened, *found), None
        try:
            theirs = model.theirs(*found)
        except ModuleNotFoundError as error:
            logger.warning("%s is not installed (%s): parity is not checked", model.library, error.name)
        else:
            _check(whole, theirs, found, model.library)
        _check_alone(opened, whole, found)
        if storage != "float32":
            folder, manifest = written(storage)
        kept = whole if storage == "float32" else answers(PublishedModel(folder, manifest), *found)
        parity = None if theirs is None else _parity(model.library, whole, kept, theirs, manifest)
        if pairs is not None:
            manifest = calibrated(folder, manifest, pairs)
        said = "not checked: its library is not installed" if parity is None else parity.sentence(storage)
        recipe = manifest.provenance.recipe | {"parity": said}
        provenance = manifest.provenance.model_copy(update={"recipe": recipe})
        finish(folder, manifest.model_copy(update={"provenance": provenance}), (), GOLDEN_TEXTS, models, target)
    return Imported(target, parity, storage, _calibration(pairs), model.facts.notes)


def answers(model: PublishedModel, a: Sequence[str], b: Sequence[str]) -> Floats:
    """What the graph that reads texts gives for n pairs: embeddings of a, as queries, and of b, as passages [2 n, D],
    or its outputs [n, K]."""
    if model.manifest.encoder is None:
        (graph,) = model.manifest.graphs
        return model.outputs(graph, a, b).astype(np.float64)
    return np.concatenate([model.embed(a, "query"), model.embed(b, "passage")]).astype(np.float64)


def _texts(model: PublishedModel) -> tuple[list[str], list[str]]:
    """Texts of the model's vocabulary, with some that are longer than it reads."""
    limit = model.manifest.limits.max_tokens
    try:
        found = texts(model.tokenizer, TEXTS, min(limit, _LONGEST))
    except ValueError as error:
        raise ImportRefused(str(error)) from error
    half = len(found) // 2
    a, b = found[:half], found[half : 2 * half]
    if limit <= _LONGEST * 10 and model.manifest.architecture != "static_mean":  # what is cut, and where
        a[0], b[1] = "the cat sat here. " * limit, "a dog ran there, " * limit
    return a, b


def _check(ours: Floats, theirs: Floats, found: tuple[list[str], list[str]], library: str) -> None:
    whole = _differences(ours, theirs)
    if not float(whole.max()) <= TOLERANCE:  # NaN fails too
        worst = int(whole.argmax())
        a, b = found
        shown = ([*a, *b][worst] if len(whole) == 2 * len(a) else f"{a[worst]} | {b[worst]}")[:200]
        raise ParityError(
            f"differs from {library} by {whole.max():.1e}, allowed {TOLERANCE:.0e}, on {shown!r}: the folder has a "
            "setting that is not read here"
        )


def _check_alone(model: PublishedModel, whole: Floats, found: tuple[list[str], list[str]]) -> None:
    """Whether an answer is the same alone and among others."""
    step = max(1, len(found[0]) // _ALONE)
    for i in range(0, len(found[0]), step):
        alone = answers(model, found[0][i : i + 1], found[1][i : i + 1])
        among = whole[[i, len(found[0]) + i]] if len(whole) == 2 * len(found[0]) else whole[i : i + 1]
        if not (most := float(_differences(alone, among).max())) <= TOLERANCE:
            raise ParityError(
                f"an answer differs by {most:.1e} with the other texts of a batch: a graph that rounds activations "
                "(dynamic int8) is not served"
            )


def _parity(library: str, whole: Floats, kept: Floats, theirs: Floats, manifest: Manifest) -> Parity:
    cosine = None
    if manifest.encoder is not None:
        lengths = np.linalg.norm(kept, axis=1) * np.linalg.norm(theirs, axis=1)
        known = lengths > 0
        cosine = float(((kept * theirs).sum(axis=1)[known] / lengths[known]).min())
    float32, stored = float(_differences(whole, theirs).max()), float(_differences(kept, theirs).max())
    return Parity(_with_version(library), len(theirs), float32, stored, cosine)


def _differences(ours: Floats, theirs: Floats) -> Floats:
    """The largest of each row; that of values beyond 1 relative to them."""
    if ours.shape != theirs.shape:
        raise ParityError(f"answers have shape {ours.shape}, the library's {theirs.shape}")
    return np.asarray((np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))).max(axis=1))


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
        "imported": name,
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
