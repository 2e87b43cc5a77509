"""Fitted maps recover the maps the data came from."""

import numpy as np
import pytest

from training.publish.calibrate import (
    even_odds,
    fit_centred_isotonic,
    fit_local_linear,
    fit_platt,
    fit_temperature,
)

RANGES = {"raw_range": (-1.0, 1.0), "target_range": (0.0, 5.0)}


def test_isotonic_by_hand_and_without_noise_still_small() -> None:
    raw = np.array([-0.5, -0.1, 0.1, 0.3, 0.8])
    target = np.array([1.0, 3.0, 2.0, 2.5, 4.0])
    # 3, 2, 2.5 violate the order: one block of mean 2.5 with its centre at 0.1.
    map_ = fit_centred_isotonic(raw, target, **RANGES)
    assert map_.x == pytest.approx((-1.0, -0.5, 0.1, 0.8, 1.0))
    assert map_.y == pytest.approx((0.0, 1.0, 2.5, 4.0, 5.0))
    raw = np.linspace(-0.99, 0.99, 5000)
    map_ = fit_centred_isotonic(raw, 2.5 + 2.5 * raw, **RANGES)  # 5000 blocks, 1024 knots at most
    assert len(map_.x) <= 1024
    assert map_.apply(raw) == pytest.approx(2.5 + 2.5 * raw, abs=1e-6)


def test_local_linear_recovers_a_line_exactly() -> None:
    raw = np.linspace(-0.5, 0.7, 100)
    map_ = fit_local_linear(raw, 2 + 1.5 * raw, target_range=(0.0, 5.0))
    assert map_.apply(np.array([-0.4, 0.1, 0.65])) == pytest.approx([1.4, 2.15, 2.975], abs=1e-6)
    # Raw scores that are all equal cannot be calibrated.
    with pytest.raises(ValueError, match=r"all 3 raw scores are 0\.5"):
        fit_local_linear(np.full(3, 0.5), np.array([1.0, 2.0, 3.0]), target_range=(0.0, 5.0))


def test_labels_that_scores_part_give_the_slope_of_smoothed_targets() -> None:
    """Of three right ones 4 / 5 and of five others 1 / 7 (Platt 1999): without smoothing the slope has no end."""
    raw = np.array([1.0] * 3 + [0.0] * 5)
    fitted = fit_platt(raw, raw == 1)
    assert fitted.apply(np.array([0.0, 1.0])) == pytest.approx([1 / 7, 4 / 5], abs=1e-3)
    assert fitted.slope == pytest.approx(np.log(4) + np.log(6), rel=1e-2)


def test_scores_of_both_labels_give_the_weighted_share_of_smoothed_targets() -> None:
    right = np.array([True, True, False, True, False, False])
    raw = np.array([7.0, 7.0, 7.0, 3.0, 3.0, 3.0])
    high, low = 4 / 5, 1 / 5  # of three right ones and three others
    assert fit_platt(raw, right).apply(np.array([7.0, 3.0])) == pytest.approx(
        [(2 * high + low) / 3, (high + 2 * low) / 3], abs=1e-3
    )
    weighted = fit_platt(raw, right, np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0]))
    assert weighted.apply(np.array([7.0, 3.0])) == pytest.approx(
        [(2 * high + 2 * low) / 4, (high + 2 * low) / 3], abs=1e-3
    )
    assert even_odds(right[1:]).tolist() == pytest.approx([1.25, 5 / 6, 1.25, 5 / 6, 5 / 6])
    for labels, message in (([True] * 6, "all 6 labels are 1"), ([False] * 6, "all 6 labels are 0")):
        with pytest.raises(ValueError, match=f"{message}: nothing to calibrate on"):
            fit_platt(raw, np.array(labels))
    with pytest.raises(ValueError, match="do not have the higher scores"):
        fit_platt(raw, ~right)


def test_the_temperature_of_equal_pairs_is_their_odds_and_ends_at_20() -> None:
    said = np.log(np.array([[0.9, 0.1]] * 4))
    assert fit_temperature(said, np.array([0, 0, 0, 1])) == pytest.approx(np.log(9) / np.log(3), abs=5e-3)
    assert fit_temperature(said, np.array([0, 1, 0, 1])) == pytest.approx(20, rel=1e-2)
    sure = np.log(np.array([[0.6, 0.4]] * 4))
    assert fit_temperature(sure, np.array([0, 0, 0, 0])) == pytest.approx(1 / 20, rel=1e-2)


def test_the_bandwidth_has_the_least_error_of_points_that_were_left_out_one_by_one() -> None:
    rng = np.random.default_rng(1)
    raw = np.sort(rng.uniform(0, 2, 40))
    target = np.sin(3 * raw) + rng.normal(0, 0.3, 40)

    def error(bandwidth: float) -> float:
        found = []
        for i, at in enumerate(raw):
            others = np.delete(raw, i) - at
            root = np.exp(-0.25 * (others / bandwidth) ** 2)
            line = np.stack([np.ones(39), others], axis=1) * root[:, None]
            found.append(np.linalg.lstsq(line, np.delete(target, i) * root, rcond=None)[0][0])
        return float(np.mean((target - found) ** 2))

    fitted = fit_local_linear(raw, target, target_range=(-2.0, 2.0))
    grid = np.ptp(raw) * np.geomspace(1 / 50, 1 / 2, 60)
    assert error(fitted.bandwidth) <= min(map(error, grid)) * 1.001
    assert (fitted.low, fitted.high) == (-2.0, 2.0)


def test_near_points_share_a_bin() -> None:
    raw, target = np.array([0.0, 1.0, 0.001, 0.5]), np.array([1.0, 4.0, 2.0, 3.0])
    fitted = fit_local_linear(raw, target, target_range=(1.0, 5.0))
    assert (fitted.x, fitted.y, fitted.weight) == ((0.0005, 0.5, 1.0), (1.5, 3.0, 4.0), (2.0, 1.0, 1.0))
