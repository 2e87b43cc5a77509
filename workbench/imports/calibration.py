"""Labelled pairs, a user's or the few that come with this package, and what is fitted on them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.manifest import EntailmentTask, Manifest
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND
from semblance.tables.labelled_pairs import PairsError, read_own
from training.data.pairs import Pair
from training.publish.calibrate import even_odds, fit_centred_isotonic, fit_platt, fit_temperature
from training.publish.runtime import PublishedModel
from workbench.imports.files import ImportRefused
from workbench.imports.model import LABELS, CalibrationPairs

SAMPLE = Path(__file__).with_name("rated.csv")  # written and rated by us, 0 to 5 as in STS, in English
FEWEST = 20  # pairs; with fewer a curve follows single answers


def read_labelled(
    path: Path, label: str | None, scale: tuple[float, float] | None = None, read_as: FileFormat = AS_FOUND
) -> CalibrationPairs:
    """Read a file (CSV, TSV, JSON Lines or Parquet) with the columns a, b and score, or a, b and label.

    Args:
        path: the file.
        label: the column of labels; None: scores are read.
        scale: lowest and highest score there can be; None: those in the file.
        read_as: encoding and separator of the file.

    Raises:
        BatchError: the file cannot be opened, or its suffix is unknown.
        ImportRefused: a missing column, an empty text, a score that is no number or beyond the scale, a label that is
            none, too few rows; names the line.
    """
    try:
        columns = ("a", "b", label or "score")
        read = read_own(path, columns, kind=None if label else "score", scale=None if label else scale, read_as=read_as)
    except PairsError as error:
        raise ImportRefused(str(error)) from None
    if read.faults:
        raise ImportRefused(f"{path}: {read.describe(read.faults)}")
    if len(read.pairs) < FEWEST:
        raise ImportRefused(f"{path}: {len(read.pairs)} pairs, at least {FEWEST} are needed")
    return CalibrationPairs([Pair(*pair) for pair in read.pairs], read.scale, path.name)


def sample() -> CalibrationPairs:
    """The rated pairs that come with this package: for a cosine, which is no score by itself."""
    read = read_labelled(SAMPLE, None, (0.0, 5.0))
    pairs = [Pair(pair.a, pair.b, target=(pair.target or 0.0) / 5.0) for pair in read.pairs]
    return CalibrationPairs(
        pairs, None, "rated pairs that come with semblance", "Apache-2.0", "workbench/imports/rated.csv"
    )


def calibrated(folder: Path, manifest: Manifest, labelled: CalibrationPairs) -> Manifest:
    """A manifest with what is fitted on the pairs through the model's graphs: the map of a similarity to their scale,
    or, where they have the labels 1 and 0, that of a relevance to a probability; or the temperature of entailment.

    Raises:
        ImportRefused: a label of another name, or only one; or scores that fall where the model's rise.
    """
    pairs = labelled.pairs
    model = PublishedModel(folder, manifest)
    a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    if (entailment := manifest.entailment) is not None:
        tempered = entailment.model_copy(update={"temperature": _temperature(model, entailment, labelled)})
        return manifest.model_copy(update={"entailment": tempered})
    if manifest.relevance is not None:
        right = np.array([label == "1" for label in _labels(labelled, ("0", "1"))])
        raw = model.similarity(a, b, "relevance").raw_score
        try:
            fitted = fit_platt(raw, right, even_odds(right))
        except ValueError:
            raise ImportRefused(
                f"{labelled.name}: relevant pairs have the lower scores: are the labels the right way round?"
            ) from None
        return manifest.model_copy(update={"relevance": manifest.relevance.model_copy(update={"calibration": fitted})})
    similarity = manifest.similarity
    assert similarity is not None
    raw = model.similarity(a, b).raw_score
    gold = np.array([pair.target for pair in pairs], dtype=np.float64)
    if labelled.scale is not None and np.cov(raw, gold)[0, 1] <= 0:  # ours are in English, the model may not be
        raise ImportRefused(
            f"{labelled.name}: pairs with the higher scores are no more alike to the model: is the scale the right way "
            "round?"
        )
    fit = fit_centred_isotonic(raw, gold, raw_range=similarity.raw_range, target_range=labelled.scale or (0.0, 1.0))
    update = {"calibration": fit, "label_scale": labelled.scale}
    return manifest.model_copy(update={"similarity": similarity.model_copy(update=update)})


def _temperature(model: PublishedModel, task: EntailmentTask, labelled: CalibrationPairs) -> float:
    own = task.labels
    known = dict.fromkeys((*own, *LABELS))
    other = next(label for label in own if label != "entailment")  # of two: all but entailment
    names = [name if name in own else other for name in _labels(labelled, [*known])]
    pairs = labelled.pairs
    found = model.entailment([pair.a for pair in pairs], [pair.b for pair in pairs])
    logarithms = np.log(np.maximum([[row[label] for label in own] for row in found], 1e-30))
    return fit_temperature(logarithms, np.array([own.index(name) for name in names]))


def _labels(labelled: CalibrationPairs, known: Sequence[str]) -> list[str]:
    found = [str(pair.label).lower() for pair in labelled.pairs]
    if unknown := set(found) - set(known):
        raise ImportRefused(f"{labelled.name}: label {min(unknown)!r}; expected {', '.join(known)}")
    if len(set(found)) < 2:
        raise ImportRefused(f"{labelled.name}: every label is {found[0]}")
    return found
