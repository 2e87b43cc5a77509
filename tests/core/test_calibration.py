"""Calibration maps against plain reference implementations, and their journey through JSON."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from core.scoring import Calibration, CentredIsotonic, LocalLinear

ADAPTER: TypeAdapter[Calibration] = TypeAdapter(Calibration)
ISOTONIC = CentredIsotonic(x=(-1.0, 0.0, 0.5, 1.0), y=(0.0, 1.0, 1.0, 5.0))
SMOOTH = LocalLinear(
    x=(0.0, 0.1, 0.4, 0.7, 1.0), y=(1.0, 1.4, 2.0, 4.0, 4.8), weight=(3, 1, 2, 5, 1), bandwidth=0.15, low=1.0, high=5.0
)
FINITE = st.floats(-3, 3)


def local_linear_slowly(map_: LocalLinear, at: float) -> float:
    """The line that minimises sum_i w_i K((x_i - at) / h) (y_i - c - s (x_i - at))^2, by the normal equations."""
    weights = [n * math.exp(-0.5 * ((x - at) / map_.bandwidth) ** 2) for x, n in zip(map_.x, map_.weight, strict=True)]
    design = np.array([[1.0, x - at] for x in map_.x])
    scaled = design.T * np.array(weights)
    level, _ = np.linalg.solve(scaled @ design, scaled @ np.array(map_.y))
    return float(min(max(level, map_.low), map_.high))


def test_isotonic_joins_its_knots() -> None:
    found = ISOTONIC.apply(np.array([-1.0, -0.5, 0.0, 0.2, 0.5, 0.75, 1.0]))
    assert found == pytest.approx([0.0, 0.5, 1.0, 1.0, 1.0, 3.0, 5.0], abs=1e-15)


@given(st.lists(FINITE, min_size=2, max_size=20))
def test_isotonic_never_falls(values: list[float]) -> None:
    found = ISOTONIC.apply(np.sort(np.array(values)))
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("at", [-0.2, 0.0, 0.05, 0.33, 0.5, 0.71, 1.0, 1.1])
def test_local_linear_solves_the_weighted_least_squares(at: float) -> None:
    assert SMOOTH.apply(np.array([at]))[0] == pytest.approx(local_linear_slowly(SMOOTH, at), abs=1e-9)


@given(st.floats(-1e6, 1e6))
def test_local_linear_is_finite_and_clipped_however_far_away(at: float) -> None:
    found = SMOOTH.apply(np.array([at]))[0]
    assert 1.0 <= found <= 5.0


@pytest.mark.parametrize("map_", [ISOTONIC, SMOOTH])
def test_json_carries_every_bit(map_: CentredIsotonic | LocalLinear) -> None:
    x = np.random.default_rng(0).uniform(-2, 2, 500)
    odd = map_.model_copy(update={"y": tuple(v + 1e-7 / 3 for v in map_.y)})
    for each in (map_, odd):
        again = ADAPTER.validate_json(ADAPTER.dump_json(each))
        assert again == each
        assert again.apply(x).tolist() == each.apply(x).tolist()


@pytest.mark.parametrize(
    ("base", "change", "message"),
    [
        (ISOTONIC, {"x": (0.0, 1.0)}, "x has 2 knots, y has 4"),
        (ISOTONIC, {"x": (0.0, 0.0, 0.5, 1.0)}, "x must rise strictly"),
        (ISOTONIC, {"y": (0.0, 2.0, 1.0, 5.0)}, "y must not fall"),
        (ISOTONIC, {"x": (0.0,), "y": (0.0,)}, "at least 2 items"),
        (ISOTONIC, {"x": tuple(range(1025)), "y": tuple(range(1025))}, "at most 1024 items"),
        (ISOTONIC, {"y": (0.0, 1.0, 1.0, math.inf)}, "finite number"),
        (ISOTONIC, {"kind": "linear"}, "does not match any of the expected tags"),
        (ISOTONIC, {"bandwidth": 1.0}, "Extra inputs are not permitted"),
        (SMOOTH, {"weight": (1, 1)}, "x has 5 knots, weight has 2"),
        (SMOOTH, {"weight": (1, 1, 0, 1, 1)}, "greater than 0"),
        (SMOOTH, {"bandwidth": 0.0}, "greater than 0"),
        (SMOOTH, {"bandwidth": math.nan}, "finite number|greater than 0"),
        (SMOOTH, {"low": 5.0}, "low must be below high, got 5.0 and 5.0"),
    ],
)
def test_maps_that_make_no_sense_are_refused(
    base: CentredIsotonic | LocalLinear, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        ADAPTER.validate_python({**base.model_dump(), **change})
