"""Labelled pairs of a user, and what is fitted on them."""

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from contract.calibration import Logistic
from contract.manifest import Manifest
from training.objectives.supervised import LABELS
from training.pairs import Pair
from training.publishing.calibrate import fit_centred_isotonic, fit_temperature
from training.publishing.families.heads import RAW_RANGE, HeadCalibrations
from training.publishing.imports.files import ImportRefused
from training.publishing.imports.model import Floats, Labelled
from training.publishing.runtime import PublishedModel

FEWEST = 20  # pairs; with fewer a curve follows single answers


def read_labelled(path: Path, label: str | None, scale: tuple[float, float] | None = None) -> Labelled:
    """Read a CSV file (or TSV, by its name) with a header and the columns a, b and score, or a, b and label.

    Args:
        path: the file, UTF-8.
        label: the column of labels; None: scores are read.
        scale: lowest and highest score there can be; None: those in the file.

    Raises:
        ImportRefused: a missing column, an empty text, a score that is no number or beyond the scale, too few rows;
            names the line.
    """
    column = label or "score"
    pairs: list[Pair] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            if missing := {"a", "b", column} - set(rows.fieldnames or ()):
                raise ImportRefused(f"{path}: no column {', '.join(sorted(missing))}; expected a, b, {column}")
            for row in rows:
                where = f"{path}: line {rows.line_num}"
                a, b, value = (row[name] or "" for name in ("a", "b", column))
                if not a.strip() or not b.strip():
                    raise ImportRefused(f"{where}: {'a' if not a.strip() else 'b'} is empty")
                pairs.append(Pair(a, b, label=value.strip()) if label else Pair(a, b, _number(value, scale, where)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ImportRefused(f"{path}: cannot be read as CSV: {error}") from error
    if len(pairs) < FEWEST:
        raise ImportRefused(f"{path}: {len(pairs)} pairs, at least {FEWEST} are needed")
    scores = [pair.target for pair in pairs if pair.target is not None] or [0.0, 1.0]
    low, high = scale or (min(scores), max(scores))
    if low >= high:
        raise ImportRefused(f"{path}: all scores are {low:g}")
    return Labelled(pairs, (low, high), path.name)


def _number(value: str, scale: tuple[float, float] | None, where: str) -> float:
    try:
        score = float(value)
    except ValueError:
        raise ImportRefused(f"{where}: score {value!r} is no number") from None
    if not math.isfinite(score) or (scale is not None and not scale[0] <= score <= scale[1]):
        limits = "" if scale is None else f" within {scale[0]:g} to {scale[1]:g}"
        raise ImportRefused(f"{where}: score {value!r} is no number{limits}")
    return score


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
    platt = LogisticRegression(C=np.inf).fit(raw, [each == "1" for each in found])
    slope, intercept = float(platt.coef_[0, 0]), float(platt.intercept_[0])
    if slope <= 0:
        raise ImportRefused(
            f"{labelled.name}: relevant pairs have the lower scores: are the labels the right way round?"
        )
    return HeadCalibrations(relevance=Logistic(slope=slope, intercept=intercept))
