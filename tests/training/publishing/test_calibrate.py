"""Fitted maps recover the maps the data came from."""

import numpy as np
import pytest

from training.publishing.calibrate import BINS, fit_centred_isotonic, fit_local_linear, fit_platt, fit_temperature

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


def test_local_linear_recovers_a_smooth_map_and_a_line_exactly() -> None:
    rng = np.random.default_rng(0)
    raw = rng.uniform(-0.9, 0.95, 1500)
    truth = 1 + 3 / (1 + np.exp(-6 * raw))
    target = truth + rng.normal(0, 0.5, 1500)
    map_ = fit_local_linear(raw, target, target_range=(0.0, 5.0))
    assert np.sqrt(np.mean((map_.apply(raw) - truth) ** 2)) < 0.1
    assert len(map_.x) <= BINS
    assert sum(map_.weight) == 1500
    raw = np.linspace(-0.5, 0.7, 100)
    map_ = fit_local_linear(raw, 2 + 1.5 * raw, target_range=(0.0, 5.0))
    assert map_.apply(np.array([-0.4, 0.1, 0.65])) == pytest.approx([1.4, 2.15, 2.975], abs=1e-6)
    # Raw scores that are all equal cannot be calibrated.
    with pytest.raises(ValueError, match=r"all 3 raw scores are 0\.5"):
        fit_local_linear(np.full(3, 0.5), np.array([1.0, 2.0, 3.0]), target_range=(0.0, 5.0))


def test_a_temperature_recovers_the_one_that_probabilities_were_sharpened_by() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 1.5, (20_000, 3))
    truth = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    gold = np.array([rng.choice(3, p=row) for row in truth])
    for sharpened in (0.5, 2.5):
        tempered = logits * sharpened
        said = tempered - np.log(np.exp(tempered).sum(1, keepdims=True))
        assert fit_temperature(said, gold) == pytest.approx(sharpened, rel=0.05)


def test_labels_that_scores_part_give_the_slope_of_smoothed_targets() -> None:
    """Of three right ones 4 / 5 and of five others 1 / 7 (Platt 1999): without smoothing the slope has no end."""
    raw = np.array([1.0] * 3 + [0.0] * 5)
    fitted = fit_platt(raw, raw == 1)
    assert fitted.apply(np.array([0.0, 1.0])) == pytest.approx([1 / 7, 4 / 5], abs=1e-3)
    assert fitted.slope == pytest.approx(np.log(4) + np.log(6), rel=1e-2)
