"""Labelled pairs of a user, and what is fitted on them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from contract.manifest import Manifest
from semblance.threshold.own_pairs import PairsError, read_own
from training.objectives.supervised import LABELS
from training.pairs import Pair
from training.publishing.calibrate import even_odds, fit_centred_isotonic, fit_platt, fit_temperature
from training.publishing.families.heads import RAW_RANGE, HeadCalibrations
from training.publishing.runtime import PublishedModel
from workbench.imports.files import ImportRefused
from workbench.imports.model import Floats, Labelled

FEWEST = 20  # pairs; with fewer a curve follows single answers


def read_labelled(path: Path, label: str | None, scale: tuple[float, float] | None = None) -> Labelled:
    """Read a file (CSV, TSV, JSON Lines or Parquet) with the columns a, b and score, or a, b and label.

    Args:
        path: the file.
        label: the column of labels; None: scores are read.
        scale: lowest and highest score there can be; None: those in the file.

    Raises:
        BatchError: the file cannot be opened, or its suffix is unknown.
        ImportRefused: a missing column, an empty text, a score that is no number or beyond the scale, a label that is
            none, too few rows; names the line.
    """
    try:
        columns = ("a", "b", label or "score")
        read = read_own(path, columns, kind=None if label else "score", scale=None if label else scale)
    except PairsError as error:
        raise ImportRefused(str(error)) from None
    if read.faults:
        raise ImportRefused(f"{path}: {read.said(read.faults)}")
    if len(read.pairs) < FEWEST:
        raise ImportRefused(f"{path}: {len(read.pairs)} pairs, at least {FEWEST} are needed")
    return Labelled([Pair(*pair) for pair in read.pairs], read.scale, path.name)


def calibrate_cosine(folder: Path, manifest: Manifest, labelled: Labelled) -> Manifest:
    """A bi-encoder's manifest with the map of its cosine to the scale of the pairs, fitted through its graph."""
    similarity = manifest.similarity
    assert similarity is not None
    pairs = labelled.pairs
    raw = PublishedModel(folder, manifest).similarity([p.a for p in pairs], [p.b for p in pairs]).raw_score
    gold = np.array([pair.target for pair in pairs], dtype=np.float64)
    fit = fit_centred_isotonic(raw, gold, raw_range=similarity.raw_range, target_range=labelled.scale)
    fitted = similarity.model_copy(update={"calibration": fit, "label_scale": labelled.scale})
    return manifest.model_copy(update={"similarity": fitted})


def head_calibrations(
    outputs: Callable[[Sequence[str], Sequence[str]], Floats], label: str | None, labelled: Labelled | None
) -> HeadCalibrations:
    """Those of a cross-encoder.

    Args:
        outputs: its logits of n pairs [n, K], with weights as they are published.
        label: the column of labels; None: scores.
        labelled: the pairs; None: nothing is calibrated.

    Raises:
        ImportRefused: a label of another name.
    """
    if labelled is None:
        return HeadCalibrations()
    pairs = labelled.pairs
    raw = outputs([p.a for p in pairs], [p.b for p in pairs])
    if label is None:
        gold = np.array([pair.target for pair in pairs], dtype=np.float64)
        unit = 1 / (1 + np.exp(-raw[:, 0]))
        fit = fit_centred_isotonic(unit, gold, raw_range=RAW_RANGE, target_range=labelled.scale)
        return HeadCalibrations(similarity=fit, label_scale=labelled.scale)
    found = [str(pair.label).lower() for pair in pairs]
    known = LABELS if raw.shape[1] == len(LABELS) else ("0", "1")
    if unknown := set(found) - set(known):
        raise ImportRefused(f"{labelled.name}: label {min(unknown)!r}; expected {', '.join(known)}")
    if raw.shape[1] == len(LABELS):
        return HeadCalibrations(temperature=fit_temperature(raw, np.array([known.index(each) for each in found])))
    if len(set(found)) < 2:
        raise ImportRefused(f"{labelled.name}: every label is {found[0]}")
    right = np.array([each == "1" for each in found])
    try:
        return HeadCalibrations(relevance=fit_platt(raw[:, 0], right, even_odds(right)))
    except ValueError:
        raise ImportRefused(
            f"{labelled.name}: relevant pairs have the lower scores: are the labels the right way round?"
        ) from None
