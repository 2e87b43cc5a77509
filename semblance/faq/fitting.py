"""Logistic regression of few features on few rows, and the threshold that decides best."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.ranking import Feature
from semblance.logistic import Flags, Floats, most_likely_weights, probabilities_of

PENALTY = 1.0  # of the squared weights of features in standard deviations: scikit-learn's default, C = 1
TOWARDS_PENALTY = 20.0  # of squared distances from known weights: best on 20 and 30 questions of development FAQs
_PARTS, _FEWEST_IN_A_PART = 10, 10  # of rows, for the calibration error


class Fitted(NamedTuple):
    """The line whose logistic function is the probability."""

    intercept: float
    weights: Floats  # [k], of the features as they are

    def probability(self, features: Floats) -> Floats:
        """[n, k] -> [n], in 0..1."""
        return probabilities_of(features @ self.weights + self.intercept)

    def named(self, names: Sequence[Feature]) -> dict[Feature, float]:
        """The weights by the names of their features."""
        return dict(zip(names, self.weights.tolist(), strict=True))


def fit(features: Floats, right: Flags, towards: Floats | None = None) -> Fitted:
    """Logistic regression with an L2 penalty.

    The features are standardised, so that the penalty does not depend on their units; the intercept has none. Without
    `towards` this is scikit-learn's `LogisticRegression` after `StandardScaler`.

    Args:
        features: [n, k].
        right: [n]; if all are equal the weights are those of `towards`, and the probability is inside 0 and 1.
        towards: [k], weights that are known from many other rows, to which few rows are drawn; None: to 0.
    """
    rows, count = features.shape
    centre, spread = features.mean(0), features.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    design = np.hstack([np.ones((rows, 1)), (features - centre) / spread])
    share = (right.sum() + 0.5) / (rows + 1)
    goal = np.concatenate([[np.log(share / (1 - share))], np.zeros(count) if towards is None else towards * spread])
    pull = np.array([0.0, *[PENALTY if towards is None else TOWARDS_PENALTY] * count])

    line = most_likely_weights(design, right, goal, pull) if right.any() and not right.all() else goal
    weights = line[1:] / spread
    return Fitted(float(line[0] - weights @ centre), weights)


def best_threshold(right: Flags, unanswerable: Flags) -> float:
    """The probability from which on answering is right more often than refusing is.

    Of questions whose first answer is not right a share c has no answer, so refusing is right with probability
    (1 - p) c, where answering is right with p: it pays from p = c / (1 + c) on. Estimated so from all questions, it
    moves less from sample to sample than the threshold with the most right decisions of these very questions.

    Args:
        right: [n], whether the first answer is.
        unanswerable: [n], whether there is no right answer.
    """
    wrong = len(right) - int(right.sum())
    share = int(unanswerable.sum()) / wrong if wrong else 0.0
    return share / (1 + share)


def folds_of(right: Flags, unanswerable: Flags, folds: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The fold of each of n rows, drawn so that each has its share of the kinds: right, wrong, without an answer."""
    kinds = np.where(unanswerable, 2, np.where(right, 1, 0))
    shuffled = random.permutation(len(kinds))
    order = shuffled[np.argsort(kinds[shuffled], kind="stable")]
    found = np.empty(len(kinds), dtype=np.int64)
    found[order] = np.arange(len(kinds)) % folds
    return found


def calibration_error(chances: Floats, right: Flags) -> float:
    """Mean distance between probability and share of right ones, over parts of the rows by rising probability.

    Naeini, Cooper and Hauskrecht (2015), with parts of equal size: ten, or of ten rows where there are fewer.
    """
    order = np.argsort(chances, kind="stable")
    parts = np.array_split(order, max(1, min(_PARTS, len(order) // _FEWEST_IN_A_PART)))
    return float(sum(abs(chances[part].mean() - right[part].mean()) * len(part) for part in parts) / len(chances))
