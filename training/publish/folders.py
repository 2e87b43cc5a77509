"""A model folder whose graphs are written: completed with golden pairs, figures and card, and put into its place.

Needs no torch.
"""

import platform
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from core.golden import GoldenPair, GoldenPairs
from core.manifest import EntailmentLabel, Figure, FileEntry, Manifest, Origin, Provenance, TrainingData, describe_file
from training.errors import UserError
from training.publish.card import write_card
from training.publish.domain import domains_of
from training.publish.graphs import share_weights
from training.publish.runtime import PublishedModel
from training.publish.shared_files import alone, install, sweep

GOLDEN, CARD = "golden.json", "README.md"


def assemble(
    folder: Path,
    fields: Mapping[str, Any],
    *,
    title: str,
    architecture: str,
    training_data: Sequence[TrainingData],
    provenance: Provenance,
    languages: tuple[str, ...] | None = None,
    origin: Origin | None = None,
) -> Manifest:
    """The manifest of what was written into a folder, whose name is the model's id; `finish` adds what it still lacks.

    Weights that two of its graphs hold are moved to files of their own.

    Args:
        folder: with its files.
        fields: what depends on them; `shared`: entries of shared files.
        title: of the model, for people.
        architecture: its name.
        training_data: every corpus that moved a weight or a choice.
        provenance: how to make it again.
        languages: of the texts that it is for, as ISO 639 codes; None: not known.
        origin: the model of a hub that it was made from.
    """
    GoldenPairs(pairs=()).save(folder / GOLDEN)
    rest = dict(fields)
    tensors = rest.pop("tensors", {}) | share_weights(folder)
    return Manifest(
        id=folder.name,
        title=title,
        architecture=architecture,
        golden=GOLDEN,
        files=files_of(folder) | rest.pop("shared", {}),
        fingerprint="0" * 64,
        tensors=tensors,
        training_data=tuple(training_data),
        figures=(),
        languages=languages,
        origin=origin,
        provenance=provenance,
        **rest,
    )


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
        target: the model's.
    """
    golden = golden_pairs(PublishedModel(folder, manifest), texts)
    golden.save(folder / GOLDEN)
    shared = {name: entry for name, entry in manifest.files.items() if entry.shared}
    manifest = manifest.model_copy(update={"figures": tuple(measured), "files": files_of(folder) | shared})
    manifest = manifest.model_copy(update={"domain": domains_of(manifest)})
    manifest = manifest.model_copy(update={"fingerprint": manifest.expected_fingerprint()})
    manifest.save(folder)
    write_card(manifest, folder / CARD)
    Manifest.load(folder).verify(folder)
    with alone(models):
        # Shared files are there before the model that names them, and go after the last one that did.
        install(folder.parent, models)
        replace_folder(folder, target)
        sweep(models)


def replace_folder(new: Path, target: Path) -> None:
    """Put a copy of a folder in another's place: a kill leaves the old one or the new one, never half of one.

    Raises:
        UserError: it cannot be written there, as the disk is full; the old one stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    arriving, leaving = (target.with_name(f".{target.name}.{which}") for which in ("new", "old"))
    if leaving.exists() and not target.exists():
        leaving.rename(target)  # a kill came between the two renames below
    for leftover in (arriving, leaving):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        shutil.copytree(new, arriving)
    except OSError as error:
        shutil.rmtree(arriving, ignore_errors=True)
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error  # of the first file
        raise UserError(f"{target} cannot be written: {why}") from error
    arriving.chmod(0o755)  # temporary folders are private; a service under another user must read this one
    if target.exists():
        target.rename(leaving)
    arriving.rename(target)
    shutil.rmtree(leaving, ignore_errors=True)


def files_of(folder: Path) -> dict[str, FileEntry]:
    """The manifest's entries for the files that lie in a folder."""
    return {path.name: describe_file(path) for path in sorted(folder.iterdir())}


def golden_pairs(model: PublishedModel, texts: Sequence[tuple[str, str]]) -> GoldenPairs:
    """What a model answers to pairs of texts."""
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
    """Versions that can move a number, of what is installed."""
    packages = ("torch", "onnx", "onnxscript", "onnxruntime", "numpy", "scipy", "scikit-learn", "tokenizers")
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
