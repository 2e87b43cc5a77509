"""The probability that two near texts say the same: logistic regression on what can be measured of a pair.

Its weights were fitted on development pairs (`python -m benchmarks.duplicates --fit` prints them). A user's own
reviewed pairs move them: the weights that are most likely given those pairs, with a Gaussian prior around the ones that
were there.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semblance.corpus.neighbours import Near
from semblance.corpus.wording import wordings
from semblance.logistic import most_likely_weights, probabilities_of

Values = npt.NDArray[np.float64]
STRENGTH = 1.0  # of the prior: how many standard deviations of a feature weigh as much as one unit of log-likelihood


@dataclass(frozen=True)
class PairModel:
    """A logistic regression on features of a pair.

    Attributes:
        weights: [k], of the features in their order.
        intercept: the log odds where all features are 0.
        scales: [k], a feature's standard deviation on the pairs that the weights come from.
    """

    weights: tuple[float, ...]
    intercept: float
    scales: tuple[float, ...]

    def probabilities(self, features: Values) -> Values:
        """Of pairs by their features [n, k], [n]."""
        return probabilities_of(features @ np.array(self.weights) + self.intercept)


def nearest_cosines(near: Near, size: int) -> Values:
    """Of each of `size` texts the highest cosine among these pairs, [size]; -1 where it is in none."""
    best = np.full(size, -1.0)
    for side in (near.queries, near.rows):
        np.maximum.at(best, side, near.cosines)
    return best


def features_of(near: Near, best: Values, words: list[list[str]]) -> Values:
    """Features of n pairs, [n, 5]: the cosine; of how many of the two texts the other one is the nearest, 0, 1 or 2;
    `Wording.alike` and its square; `Wording.edited`.

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
    mean = np.array([*start.weights, start.intercept])
    precision = strength * np.array([*np.square(start.scales), 1.0])
    *weights, intercept = most_likely_weights(
        np.column_stack([features, np.ones(len(features))]), labels, mean, precision
    ).tolist()
    return PairModel(tuple(weights), intercept, start.scales)


def empty_model(features: Values) -> PairModel:
    """A start without an opinion: all weights 0, the scales of these features [n, k]."""
    scales = np.maximum(features.std(axis=0), 1e-6)
    return PairModel((0.0,) * len(scales), 0.0, tuple(scales.tolist()))
