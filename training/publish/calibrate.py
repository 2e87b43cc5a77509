"""Fit what calibrates answers: maps of raw scores to human ratings, and the temperature of class probabilities."""

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from core.scoring import MAX_KNOTS, CentredIsotonic, LocalLinear, Logistic

Floats = npt.NDArray[np.float64]
BINS = 256  # binned training points of a local-linear fit


def fit_centred_isotonic(
    raw: Floats, target: Floats, *, raw_range: tuple[float, float], target_range: tuple[float, float]
) -> CentredIsotonic:
    """Isotonic regression of target [n] on raw [n], interpolated between block centres, fixed at both ends of the
    ranges.

    The ends are fixed because they are known without data: equal sentences have the highest raw score and the highest
    rating. Oron & Flournoy (2017), "Centered Isotonic Regression".
    """
    order = np.argsort(raw, kind="stable")
    x, y = raw[order], target[order]
    fitted = IsotonicRegression(y_min=target_range[0], y_max=target_range[1]).fit(x, y).predict(x)
    low, high = raw_range
    knots_x, knots_y = [low], [target_range[0]]
    # Blocks of equal fit; the block's centre of mass carries its value.
    for block in np.split(np.arange(len(x)), np.flatnonzero(np.diff(fitted) > 0) + 1):
        centre, value = float(x[block].mean()), float(fitted[block[0]])
        if centre - knots_x[-1] > 1e-9 and high - centre > 1e-9 and value >= knots_y[-1]:
            knots_x.append(centre)
            knots_y.append(value)
    knots_x.append(high)
    knots_y.append(target_range[1])
    # Noise-free data has as many blocks as points; evenly spaced ones, both ends included, are enough.
    kept = np.unique(np.linspace(0, len(knots_x) - 1, min(len(knots_x), MAX_KNOTS)).round().astype(int))
    return CentredIsotonic(x=tuple(knots_x[i] for i in kept), y=tuple(knots_y[i] for i in kept))


def fit_temperature(log_probabilities: Floats, gold: npt.NDArray[np.integer]) -> float:
    """The temperature that divides log-probabilities [n, k] for the least negative log-likelihood of classes [n].

    Guo, Pleiss, Sun & Weinberger (2017), "On Calibration of Modern Neural Networks", section 4.2: one number, which
    moves no label. Between 1/20 and 20.
    """

    def loss(log_temperature: float) -> float:
        tempered = log_probabilities / np.exp(log_temperature)
        return float(np.mean(logsumexp(tempered, axis=1) - tempered[np.arange(len(gold)), gold]))

    best = minimize_scalar(loss, bounds=(-np.log(20), np.log(20)), method="bounded", options={"xatol": 1e-3})
    return round(float(np.exp(best.x)), 4)


def fit_platt(raw: Floats, right: npt.NDArray[np.bool_], weight: Floats | None = None) -> Logistic:
    """The logistic function of raw scores [n] that gives the probability of being right [n].

    Platt (1999), "Probabilistic Outputs for Support Vector Machines", section 2.2: the targets are (m + 1) / (m + 2)
    for the m right ones and 1 / (k + 2) for the k others, so that labels that a score parts without a mistake give no
    infinite slope. `weight` [n]: how much each counts; 1 without it.

    Raises:
        ValueError: only one label, or the right ones do not have the higher scores.
    """
    if right.all() or not right.any():
        raise ValueError(f"all {len(right)} labels are {int(right[0])}: nothing to calibrate on")
    counts = int(right.sum()), int((~right).sum())
    target = np.where(right, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2))
    centre, spread = float(raw.mean()), float(raw.std()) or 1.0  # the solver wants values of one size
    both = np.tile((raw - centre) / spread, 2)[:, None]
    each = np.ones(len(raw)) if weight is None else weight
    labels, weights = np.repeat([1, 0], len(raw)), np.concatenate([each * target, each * (1 - target)])
    fit = LogisticRegression(C=np.inf).fit(both, labels, sample_weight=weights)
    slope = float(fit.coef_[0, 0]) / spread
    if slope <= 0:
        raise ValueError("pairs with the label 1 do not have the higher scores")
    return Logistic(slope=slope, intercept=float(fit.intercept_[0]) - slope * centre)


def even_odds(right: npt.NDArray[np.bool_]) -> Floats:
    """Weights [n], 1 on average, with which the right ones count as much as all others together."""
    return np.where(right, 0.5 / right.mean(), 0.5 / (1 - right.mean()))


def fit_local_linear(raw: Floats, target: Floats, *, target_range: tuple[float, float]) -> LocalLinear:
    """Local-linear regression of target [n] on raw [n] (Fan & Gijbels 1992), bandwidth by leave-one-out.

    The error is the mean squared error of each point under the fit to the others, minimised over the logarithm of
    the bandwidth between 1/200 and 1/2 of the range of raw.

    Raises:
        ValueError: all raw scores are equal.
    """
    if np.ptp(raw) == 0:
        raise ValueError(f"all {len(raw)} raw scores are {raw[0]}: nothing to calibrate on")
    edges = np.linspace(raw.min(), raw.max(), BINS + 1)
    which = np.clip(np.searchsorted(edges, raw, side="right") - 1, 0, BINS - 1)
    counts = np.bincount(which, minlength=BINS)
    used = counts > 0
    x = np.bincount(which, raw, BINS)[used] / counts[used]
    y = np.bincount(which, target, BINS)[used] / counts[used]
    weight = counts[used].astype(np.float64)
    spread = float(np.ptp(raw))

    def leave_one_out(log_bandwidth: float) -> float:
        bandwidth = float(np.exp(log_bandwidth))
        offset = x[None, :] - raw[:, None]
        kernel = np.exp(-0.5 * (offset / bandwidth) ** 2) * weight
        s0, s1, s2 = kernel.sum(1), (kernel * offset).sum(1), (kernel * offset**2).sum(1)
        determinant = s0 * s2 - s1**2
        slope = np.where(determinant > 1e-12 * s0 * s2, s2 / np.maximum(determinant, 1e-300), 1 / s0)
        lines = kernel * (s2[:, None] - s1[:, None] * offset)
        fit = np.where(
            determinant > 1e-12 * s0 * s2,
            (lines * y).sum(1) / np.maximum(determinant, 1e-300),
            (kernel * y).sum(1) / s0,
        )
        own = np.minimum(slope, 0.999)  # the point's own weight in its fit: kernel(0) = 1
        return float(np.mean(((target - fit) / (1 - own)) ** 2))

    best = minimize_scalar(
        leave_one_out, bounds=(np.log(spread / 200), np.log(spread / 2)), method="bounded", options={"xatol": 0.02}
    )
    return LocalLinear(
        x=tuple(x.tolist()),
        y=tuple(y.tolist()),
        weight=tuple(weight.tolist()),
        bandwidth=float(np.exp(best.x)),
        low=target_range[0],
        high=target_range[1],
    )
