"""The probability that two near texts say the same: logistic regression on what can be measured of a pair.

Its weights were fitted on development pairs (`python -m benchmarks.duplicates --fit` prints them). A user's own
reviewed pairs move them: the weights that are most likely given those pairs, with a Gaussian prior around the ones that
were there (C. Bishop, "Pattern Recognition and Machine Learning", 4.5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semblance.corpus.neighbours import Near
from semblance.corpus.wording import wordings
from semblance.extras import needs

with needs("searching a file", extra="search"):
    from scipy.optimize import minimize

Values = npt.NDArray[np.float64]
FEATURES = (
    "cosine",
    "nearest_of",  # of how many of the two texts the other one is the nearest: 0, 1 or 2
    "alike",  # see `Wording`
    "alike_squared",
    "edited",
)
READ = "entails"  # the log odds of P(entailment), the larger of both directions, from a model that reads both texts
STRENGTH = 1.0  # of the prior: how many standard deviations of a feature weigh as much as one unit of log-likelihood


@dataclass(frozen=True)
class PairModel:
    """A logistic regression on features of a pair.

    Attributes:
        names: of the features, in their order.
        weights: [k].
        intercept: the log odds where all features are 0.
        scales: [k], a feature's standard deviation on the pairs that the weights come from.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float
    scales: tuple[float, ...]

    def probabilities(self, features: Values) -> Values:
        """Of pairs by their features [n, k], [n]."""
        found: Values = 1 / (1 + np.exp(-np.clip(features @ np.array(self.weights) + self.intercept, -30, 30)))
        return found


def nearest_cosines(near: Near, size: int) -> Values:
    """Of each of `size` texts the highest cosine among these pairs, [size]; -1 where it is in none."""
    best = np.full(size, -1.0)
    for side in (near.queries, near.rows):
        np.maximum.at(best, side, near.cosines)
    return best


def features_of(near: Near, best: Values, words: list[list[str]]) -> Values:
    """Features of n pairs, [n, 5], in the order of `FEATURES`.

    Args:
        near: the pairs.
        best: of each text of the file the cosine of its nearest one, [N].
        words: of each text of the file.
    """
    gaps = np.stack([best[near.queries] - near.cosines, best[near.rows] - near.cosines], axis=1)
    alike, edited = wordings(words, zip(near.queries.tolist(), near.rows.tolist(), strict=True)).T
    return np.column_stack([near.cosines, (gaps <= 1e-7).sum(axis=1), alike, alike**2, edited])


def log_odds(probabilities: Values) -> Values:
    """Of a model's scores, as a feature; bounded, for a score may be 0 or 1."""
    kept = np.clip(probabilities, 1e-4, 1 - 1e-4)
    found: Values = np.log(kept / (1 - kept))
    return found


def fit(features: Values, labels: npt.NDArray[np.bool_], start: PairModel, strength: float = STRENGTH) -> PairModel:
    """The weights that labelled pairs make most likely.

    Args:
        features: [n, k].
        labels: [n].
        start: the prior's mean, and its scales.
        strength: of the prior.
    """
    scales, mean = np.array(start.scales), np.array([*start.weights, start.intercept])
    inputs = np.column_stack([features, np.ones(len(features))])
    prior = strength * np.array([*(scales**2), 1.0])
    signs = np.where(labels, 1.0, -1.0)

    def loss(weights: Values) -> tuple[float, Values]:
        margins = signs * (inputs @ weights)
        away = weights - mean
        gradient = -(signs / (1 + np.exp(np.clip(margins, -500, 500)))) @ inputs + prior * away
        return float(np.logaddexp(0, -margins).sum() + (prior * away**2).sum() / 2), gradient

    found = minimize(loss, mean, jac=True, method="L-BFGS-B").x
    return PairModel(start.names, tuple(found[:-1].tolist()), float(found[-1]), start.scales)


def empty_model(names: Sequence[str], features: Values) -> PairModel:
    """A start without an opinion: all weights 0, the scales of these features [n, k]."""
    scales = np.maximum(features.std(axis=0), 1e-6)
    return PairModel(tuple(names), (0.0,) * len(names), 0.0, tuple(scales.tolist()))
