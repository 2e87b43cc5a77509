"""Logistic regression with a Gaussian prior, in NumPy: the command line is installed without scikit-learn."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_STEPS = 100
_NEAR = 1e-9  # a step this small has arrived


def probabilities_of(log_odds: Floats) -> Floats:
    """The logistic function of any array, in 0..1, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * log_odds))


def most_likely_weights(inputs: Floats, labels: Flags, mean: Floats, precision: Floats) -> Floats:
    """The weights that labelled rows and the prior make most likely together (C. Bishop, "Pattern Recognition and
    Machine Learning", 4.5), by Newton's method (Hastie, Tibshirani and Friedman 2009, section 4.4).

    With `mean` 0 and `precision` 1 / C it is scikit-learn's `LogisticRegression`, which cannot draw weights to others.

    Args:
        inputs: [n, k]; a column of ones makes an intercept.
        labels: [n], true or false.
        mean: [k], of the prior; the answer where there are no rows.
        precision: [k], of the prior, one over its variance; 0 leaves a weight free, which only labels of both kinds
            bound.

    Returns:
        [k].
    """

    def loss(at: Floats) -> float:
        margin = np.where(labels, -1.0, 1.0) * (inputs @ at)
        return float(np.logaddexp(0.0, margin).sum() + 0.5 * (precision * (at - mean) ** 2).sum())

    weights = mean
    for _ in range(_STEPS):
        chance = probabilities_of(inputs @ weights)
        gradient = inputs.T @ (chance - labels) + precision * (weights - mean)
        curvature = (inputs.T * (chance * (1 - chance))) @ inputs + np.diag(precision + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        before = loss(weights)
        while np.abs(step).max() > _NEAR and loss(weights - step) > before:
            step = step / 2  # far from the minimum a whole step may lead away from it
        weights = weights - step
        if np.abs(step).max() < _NEAR:
            break
    return weights
