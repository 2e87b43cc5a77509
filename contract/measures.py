"""Comparisons of embeddings, and scores from class probabilities; in numpy and float64.

float64, so that scores of training and service agree to the last digit; the cost is negligible.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Stands for a norm of 0, where the dot product is 0 too; far below the product of any two others in float32.
_LEAST_NORM = np.finfo(np.float64).tiny

DIGITS = (
    7  # significant ones: more of float32 depends on the order of its sums, and so on a text's neighbours in a batch
)
_FEW = 12  # numbers that are rounded one by one in less time than together
_POWERS = np.array([float(f"1e{places}") for places in range(23)])  # all that float64 has exactly

Floats = npt.NDArray[np.float64]
Embeddings = npt.NDArray[np.floating]


def cosine(a: Embeddings, b: Embeddings) -> Floats:
    """Cosine of each pair of rows: [n, d] or [1, d], [n, d] -> [n] in [-1, 1]; 0 where a row is all zeros."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    norms = np.sqrt(np.vecdot(a64, a64) * np.vecdot(b64, b64))
    return clip(np.vecdot(a64, b64) / np.maximum(norms, _LEAST_NORM), -1.0, 1.0)


def exp_l1(a: Embeddings, b: Embeddings) -> Floats:
    """exp(-||a - b||_1) of each pair of rows: [n, d] or [1, d], [n, d] -> [n] in [0, 1] (MaLSTM's g)."""
    return np.asarray(np.exp(-np.abs(a.astype(np.float64) - b.astype(np.float64)).sum(axis=1)))


def probabilities(log_probabilities: npt.NDArray[np.floating]) -> Floats:
    """Softmax over the last axis [n, k]; also re-normalises log-probabilities rounded to float32."""
    shifted = log_probabilities.astype(np.float64)
    shifted = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def expected_rating(log_probabilities: npt.NDArray[np.floating], classes: Sequence[float]) -> Floats:
    """y = r^T p (Tai et al. 2015, eq. 15): log-probabilities [n, k] and the rating of each class -> [n]."""
    return np.asarray(probabilities(log_probabilities) @ np.asarray(classes, dtype=np.float64))


def to_unit(values: Floats, low: float, high: float) -> Floats:
    """Map `low`..`high` linearly to 0..1 and clip what lies outside."""
    return clip((values - low) / (high - low), 0.0, 1.0)


def rounded(values: npt.NDArray[np.floating]) -> Floats:
    """Numbers [...] to seven significant digits: of each the float64 that is nearest to that decimal."""
    if values.size > _FEW:
        size = np.abs(values)
        exponents = np.floor(np.log10(np.where(size > 0, size, 1.0))).astype(np.int64)
        places = DIGITS - 1 - exponents
        if places.min() >= 0 and places.max() < len(_POWERS):  # all but those that are very large or small
            scale = _POWERS[places]
            return np.asarray(np.rint(values * scale) / scale)
    return np.array([to_digits(value) for value in values.ravel().tolist()], np.float64).reshape(values.shape)


def to_digits(value: float) -> float:
    """One number to seven significant digits."""
    return float(f"{value:.{DIGITS}g}")


def clip(values: Floats, low: float, high: float) -> Floats:
    """As `np.clip`, whose checks of arguments cost more than the cosine of one pair."""
    return np.asarray(np.minimum(np.maximum(values, low), high))
