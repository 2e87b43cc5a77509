"""The threshold of scores that parts labelled pairs best, and how far that choice can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.metrics import precision_recall_curve, precision_recall_fscore_support
from sklearn.utils import resample

from training.thresholds.labelled import ThresholdError

Scores = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Quality:
    """What a threshold does: pairs with at least this score pass."""

    threshold: float
    precision: float  # share of the passing pairs that have the label 1; 0 if none passes
    recall: float  # share of the pairs with the label 1 that pass
    f1: float
    passing: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean over resamples, and the range of 95 % of them."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sureness:
    """Over resampled pairs: the threshold, and its quality on the pairs that did not choose it."""

    resamples: int
    threshold: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate


def quality(scores: Scores, labels: Labels, threshold: float) -> Quality:
    """Precision, recall and F1 of one threshold: scores and labels [n]."""
    passing = scores >= threshold
    precision, recall, f1, _ = precision_recall_fscore_support(labels, passing, average="binary", zero_division=0)
    return Quality(threshold, float(precision), float(recall), float(f1), int(passing.sum()))


def choose(scores: Scores, labels: Labels, precision: float | None = None) -> float:
    """The best threshold: half-way between the lowest score that passes and the next lower one.

    Args:
        scores: [n], 0..1.
        labels: [n], with both values.
        precision: the least wanted; of the thresholds that reach it the one with most recall. None: the highest F1.

    Raises:
        ThresholdError: no threshold reaches that precision.
    """
    at, recalls, cuts = precision_recall_curve(labels, scores)
    at, recalls = at[:-1], recalls[:-1]  # the last point is no threshold: nothing passes there
    if precision is None:
        sums = at + recalls
        best = int(np.argmax(np.divide(2 * at * recalls, sums, out=np.zeros_like(sums), where=sums > 0)))
    else:
        reached = np.flatnonzero(at >= precision)
        if not len(reached):
            raise ThresholdError(f"no threshold has a precision of {precision:g}; the highest is {at.max():.4f}")
        best = int(reached[np.argmax(recalls[reached])])
    lowest = float(cuts[best])
    below = scores[scores < lowest]
    return (lowest + float(below.max())) / 2 if len(below) else lowest


def resampled(
    scores: Scores, labels: Labels, precision: float | None = None, *, resamples: int = 1000, seed: int = 1
) -> Sureness:
    """Choose on `resamples` bootstrap samples of the pairs, stratified by label; measure each choice on the rest.

    Efron and Tibshirani (1993), chapters 13 and 17: percentile intervals, and the pairs that a sample leaves out.

    Raises:
        ThresholdError: fewer than two pairs have one of the labels, or no sample reaches that precision.
    """
    if min(labels.sum(), (~labels).sum()) < 2:
        raise ThresholdError("an interval needs at least two pairs with each label")
    places = np.arange(len(scores))
    random = np.random.RandomState(seed)
    found: list[Quality] = []
    for _ in range(resamples):
        drawn = resample(places, stratify=labels, random_state=random)
        rest = np.setdiff1d(places, drawn)
        if len(np.unique(labels[rest])) < 2:
            continue  # nothing to measure on
        try:
            threshold = choose(scores[drawn], labels[drawn], precision)
        except ThresholdError:
            continue  # this sample does not reach the precision
        found.append(quality(scores[rest], labels[rest], threshold))
    if not found:
        raise ThresholdError("no resample of these pairs gives a threshold: give more pairs")

    def estimate(values: Sequence[float]) -> Estimate:
        low, high = np.percentile(values, [2.5, 97.5])
        return Estimate(float(np.mean(values)), float(low), float(high))

    return Sureness(
        len(found),
        estimate([each.threshold for each in found]),
        estimate([each.precision for each in found]),
        estimate([each.recall for each in found]),
        estimate([each.f1 for each in found]),
    )
