"""Comparisons of embeddings, scores from class probabilities, and calibration; in numpy and float64.

float64, so that scores of training and service agree to the last digit; the cost is negligible.

A calibration is a monotone or smooth map from a raw score to human ratings. `training/publish/calibrate.py` fits
them, the manifest has their parameters, and training and service apply them with this code.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

# Stands for a norm of 0, where the dot product is 0 too; far below the product of any two others in float32.
_MIN_NORM = np.finfo(np.float64).tiny

DIGITS = (
    7  # significant ones: more of float32 depends on the order of its sums, and so on a text's neighbours in a batch
)
_FEW = 12  # numbers that are rounded one by one in less time than together
_POWERS = np.array([float(f"1e{places}") for places in range(23)])  # all that float64 has exactly

Floats = npt.NDArray[np.float64]
Embeddings = npt.NDArray[np.floating]
MAX_KNOTS = 1024  # keeps a map to a few kilobytes


def cosine(a: Embeddings, b: Embeddings) -> Floats:
    """Cosine of each pair of rows: [n, d] or [1, d], [n, d] -> [n] in [-1, 1]; 0 where a row is all zeros."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    norms = np.sqrt(np.vecdot(a64, a64) * np.vecdot(b64, b64))
    return clip(np.vecdot(a64, b64) / np.maximum(norms, _MIN_NORM), -1.0, 1.0)


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
    return np.array([round_significant(value) for value in values.ravel().tolist()], np.float64).reshape(values.shape)


def round_significant(value: float) -> float:
    """One number to seven significant digits."""
    return float(f"{value:.{DIGITS}g}")


def clip(values: Floats, low: float, high: float) -> Floats:
    """As `np.clip`, whose checks of arguments cost more than the cosine of one pair."""
    return np.asarray(np.minimum(np.maximum(values, low), high))


@lru_cache(maxsize=256)
def _array(values: tuple[float, ...]) -> Floats:
    """A field as an array, cached: conversion costs more than evaluating a map at one value."""
    array = np.asarray(values, dtype=np.float64)
    array.flags.writeable = False  # shared by every call
    return array


class _Knots(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    x: tuple[float, ...] = Field(min_length=2, max_length=MAX_KNOTS)
    y: tuple[float, ...] = Field(min_length=2, max_length=MAX_KNOTS)

    @model_validator(mode="after")
    def _same_length_and_rising(self) -> Self:
        if len(self.x) != len(self.y):
            raise ValueError(f"x has {len(self.x)} knots, y has {len(self.y)}")
        if any(b <= a for a, b in zip(self.x, self.x[1:], strict=False)):
            raise ValueError("x must rise strictly")
        return self


class CentredIsotonic(_Knots):
    """Isotonic regression drawn through the centres of its blocks (Oron & Flournoy 2017).

    Ordinary isotonic regression is a step function, which maps different scores to one value; joining the block
    centres makes it strictly increasing between the first and last knot.
    """

    kind: Literal["centred_isotonic"] = "centred_isotonic"

    @model_validator(mode="after")
    def _monotone(self) -> Self:
        if any(b < a for a, b in zip(self.y, self.y[1:], strict=False)):
            raise ValueError("y must not fall")
        return self

    def apply(self, raw: Floats) -> Floats:
        """Piecewise-linear interpolation, constant outside the knots: [n] -> [n]."""
        return np.asarray(np.interp(raw, _array(self.x), _array(self.y)))


class LocalLinear(_Knots):
    """Local-linear regression with a Gaussian kernel (Fan & Gijbels 1992), as MaLSTM calibrates.

    `x`, `y`, `weight` are the training points in at most 1024 bins of `x`, with their counts as weights. The estimate
    is clipped to `low`..`high`.
    """

    kind: Literal["local_linear"] = "local_linear"
    weight: tuple[Annotated[float, Field(gt=0)], ...]
    bandwidth: float = Field(gt=0)
    low: float
    high: float

    @model_validator(mode="after")
    def _one_weight_each(self) -> Self:
        if len(self.weight) != len(self.x):
            raise ValueError(f"x has {len(self.x)} knots, weight has {len(self.weight)}")
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")
        return self

    def apply(self, raw: Floats) -> Floats:
        """Weighted least-squares line around each value, read at that value: [n] -> [n]."""
        x, y, weight = _array(self.x), _array(self.y), _array(self.weight)
        offset = x[None, :] - np.asarray(raw, dtype=np.float64)[:, None]
        scaled = (offset / self.bandwidth) ** 2
        # Shifted by the nearest point, so that weights do not underflow far from all points.
        kernel = np.exp(-0.5 * (scaled - scaled.min(axis=1, keepdims=True))) * weight
        s0, s1, s2 = kernel.sum(1), (kernel * offset).sum(1), (kernel * offset**2).sum(1)
        t0, t1 = (kernel * y).sum(1), (kernel * offset * y).sum(1)
        determinant = s0 * s2 - s1**2
        mean = t0 / s0
        # With one effective point there is no slope: the local mean.
        safe = determinant > 1e-12 * s0 * s2
        line = np.divide(s2 * t0 - s1 * t1, determinant, out=mean.copy(), where=safe)
        return np.asarray(np.clip(line, self.low, self.high))


class Logistic(BaseModel):
    """The logistic function of a line: a classifier's raw output -> a probability (Platt 1999)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["logistic"] = "logistic"
    slope: float = Field(gt=0)
    intercept: float = 0.0

    def apply(self, raw: Floats) -> Floats:
        """[n] -> [n], in 0..1."""
        # tanh takes any value; exp would overflow.
        return 0.5 * (1.0 + np.tanh(0.5 * (self.slope * np.asarray(raw, dtype=np.float64) + self.intercept)))


Calibration = Annotated[CentredIsotonic | LocalLinear | Logistic, Field(discriminator="kind")]
