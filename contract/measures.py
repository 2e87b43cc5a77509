"""Comparisons of embeddings, and scores from class probabilities; in numpy and float64.

float64, so that scores of training and service agree to the last digit; the cost is negligible.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Stands for a norm of 0, where the dot product is 0 too; far below the product of any two others in float32.
_LEAST_NORM = np.finfo(np.float64).tiny

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


def clip(values: Floats, low: float, high: float) -> Floats:
    """As `np.clip`, whose checks of arguments cost more than the cosine of one pair."""
    return np.asarray(np.minimum(np.maximum(values, low), high))
