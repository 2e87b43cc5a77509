"""The threshold of scores that parts labelled pairs best, and how far that choice can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semblance.errors import BatchError

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
class ThresholdInterval:
    """Over resampled pairs: the threshold, and its quality on the pairs that did not choose it."""

    resamples: int
    threshold: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate


def quality(scores: Scores, labels: Labels, threshold: float) -> Quality:
    """Precision, recall and F1 of one threshold: scores and labels [n]."""
    passing = scores >= threshold
    right, passed, wanted = int((labels & passing).sum()), int(passing.sum()), int(labels.sum())
    f1 = 2 * right / (passed + wanted) if passed + wanted else 0.0
    return Quality(threshold, right / passed if passed else 0.0, right / wanted if wanted else 0.0, f1, passed)


def choose(scores: Scores, labels: Labels, precision: float | None = None) -> float:
    """The best threshold: half-way between the lowest score that passes and the next lower one.

    Args:
        scores: [n], 0..1.
        labels: [n], with both values.
        precision: the least wanted; of the thresholds that reach it the one with most recall. None: the highest F1.

    Raises:
        BatchError: no threshold reaches that precision.
    """
    order = np.argsort(scores, kind="stable")
    cuts, first = np.unique(scores[order], return_index=True)  # rising: pairs from `first` on pass
    right = np.cumsum(labels[order][::-1])[::-1][first]
    passed = len(scores) - first
    at, recalls = right / passed, right / labels.sum()
    if precision is None:
        best = int(np.argmax(2 * right / (passed + labels.sum())))
    else:
        reached = np.flatnonzero(at >= precision)
        if not len(reached):
            raise BatchError(f"no threshold has a precision of {precision:g}; the highest is {at.max():.4f}")
        best = int(reached[np.argmax(recalls[reached])])
    lowest = float(cuts[best])
    below = scores[scores < lowest]
    return (lowest + float(below.max())) / 2 if len(below) else lowest


def resampled(
    scores: Scores, labels: Labels, precision: float | None = None, *, resamples: int = 1000, seed: int = 1
) -> ThresholdInterval:
    """Choose on `resamples` bootstrap samples of the pairs, stratified by label; measure each choice on the rest.

    Efron and Tibshirani (1993), chapters 13 and 17: percentile intervals, and the pairs that a sample leaves out.

    Raises:
        BatchError: fewer than two pairs have one of the labels, or no sample reaches that precision.
    """
    if min(labels.sum(), (~labels).sum()) < 2:
        raise BatchError("an interval needs at least two pairs with each label")
    places = np.arange(len(scores))
    strata = [places[labels], places[~labels]]
    random = np.random.default_rng(seed)
    found: list[Quality] = []
    for _ in range(resamples):
        drawn = np.concatenate([random.choice(stratum, len(stratum)) for stratum in strata])
        rest = np.setdiff1d(places, drawn)
        if len(np.unique(labels[rest])) < 2:
            continue  # nothing to measure on
        try:
            threshold = choose(scores[drawn], labels[drawn], precision)
        except BatchError:
            continue  # this sample does not reach the precision
        found.append(quality(scores[rest], labels[rest], threshold))
    if not found:
        raise BatchError("no resample of these pairs gives a threshold: give more pairs")

    def estimate(values: Sequence[float]) -> Estimate:
        low, high = np.percentile(values, [2.5, 97.5])
        return Estimate(float(np.mean(values)), float(low), float(high))

    names = ("threshold", "precision", "recall", "f1")
    return ThresholdInterval(len(found), *(estimate([getattr(each, name) for each in found]) for name in names))
