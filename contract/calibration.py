"""Calibration: monotone or smooth maps from a raw score to human ratings, evaluated in numpy.

`training/publishing/calibrate.py` fits them, the manifest has their parameters, and training and service apply them
with this code.
"""

from functools import lru_cache
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

Floats = npt.NDArray[np.float64]

MAX_KNOTS = 1024  # keeps a map to a few kilobytes


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
