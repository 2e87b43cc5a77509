"""Fitted maps recover the maps the data came from."""

import numpy as np
import pytest

from contract.calibration import LocalLinear
from training.publishing.calibrate import BINS, fit_centred_isotonic, fit_local_linear, fit_temperature

RANGES = {"raw_range": (-1.0, 1.0), "target_range": (0.0, 5.0)}


def noisy(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raw scores, noisy targets, true targets 1 + 3 / (1 + exp(-6 raw))."""
    rng = np.random.default_rng(seed)
    raw = rng.uniform(-0.9, 0.95, n)
    truth = 1 + 3 / (1 + np.exp(-6 * raw))
    return raw, truth + rng.normal(0, noise, n), truth


def test_isotonic_recovers_a_rising_map() -> None:
    raw, target, truth = noisy(1500, 0.5)
    map_ = fit_centred_isotonic(raw, target, **RANGES)
    assert np.sqrt(np.mean((map_.apply(raw) - truth) ** 2)) < 0.12


def test_isotonic_is_pinned_at_both_ends() -> None:
    raw, target, _ = noisy(200, 0.5)
    map_ = fit_centred_isotonic(raw, target, **RANGES)
    assert map_.apply(np.array([-1.0, 1.0])).tolist() == [0.0, 5.0]
    assert (map_.x[0], map_.x[-1]) == (-1.0, 1.0)


def test_isotonic_never_ties_scores_between_its_blocks() -> None:
    raw, target, _ = noisy(800, 1.0)
    map_ = fit_centred_isotonic(raw, target, **RANGES)
    inside = np.linspace(-0.6, 0.7, 300)
    assert (np.diff(map_.apply(inside)) > 0).all()


def test_isotonic_by_hand() -> None:
    raw = np.array([-0.5, -0.1, 0.1, 0.3, 0.8])
    target = np.array([1.0, 3.0, 2.0, 2.5, 4.0])
    # 3, 2, 2.5 violate the order: one block of mean 2.5 with its centre at 0.1.
    map_ = fit_centred_isotonic(raw, target, **RANGES)
    assert map_.x == pytest.approx((-1.0, -0.5, 0.1, 0.8, 1.0))
    assert map_.y == pytest.approx((0.0, 1.0, 2.5, 4.0, 5.0))


def test_isotonic_with_points_at_the_ends_and_equal_raw_scores() -> None:
    raw = np.array([-1.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    target = np.array([1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    map_ = fit_centred_isotonic(raw, target, **RANGES)
    assert map_.x == (-1.0, 0.0, 1.0)
    assert map_.y == pytest.approx((0.0, 2.0, 5.0))


def test_isotonic_of_a_falling_relation_is_one_flat_block() -> None:
    raw = np.linspace(-0.5, 0.5, 50)
    map_ = fit_centred_isotonic(raw, 2.5 - raw, **RANGES)
    assert map_.y == pytest.approx((0.0, 2.5, 5.0))


def test_isotonic_without_noise_still_travels() -> None:
    raw = np.linspace(-0.99, 0.99, 5000)
    map_ = fit_centred_isotonic(raw, 2.5 + 2.5 * raw, **RANGES)  # 5000 blocks, 1024 knots at most
    assert len(map_.x) <= 1024
    assert map_.apply(raw) == pytest.approx(2.5 + 2.5 * raw, abs=1e-6)


def test_local_linear_recovers_a_smooth_map() -> None:
    raw, target, truth = noisy(1500, 0.5)
    map_ = fit_local_linear(raw, target, target_range=(0.0, 5.0))
    assert np.sqrt(np.mean((map_.apply(raw) - truth) ** 2)) < 0.1
    assert len(map_.x) <= BINS
    assert sum(map_.weight) == 1500


def test_local_linear_recovers_a_line_exactly() -> None:
    raw = np.linspace(-0.5, 0.7, 100)
    map_ = fit_local_linear(raw, 2 + 1.5 * raw, target_range=(0.0, 5.0))
    assert map_.apply(np.array([-0.4, 0.1, 0.65])) == pytest.approx([1.4, 2.15, 2.975], abs=1e-6)


def leave_one_out_slowly(raw: np.ndarray, target: np.ndarray, map_: LocalLinear, bandwidth: float) -> float:
    """Mean squared error of each point under a fit to all others, by solving each least-squares problem."""
    errors = []
    for i in range(len(raw)):
        others = np.arange(len(raw)) != i
        offset = raw[others] - raw[i]
        root = np.exp(-0.25 * (offset / bandwidth) ** 2)
        line = np.polynomial.polynomial.polyfit(offset, target[others], 1, w=root)
        errors.append((target[i] - line[0]) ** 2)
    return float(np.mean(errors))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore:The fit may be poorly conditioned")
def test_the_bandwidth_is_close_to_the_best_of_an_exhaustive_search(seed: int) -> None:
    raw, target, _ = noisy(150, 0.4, seed)
    map_ = fit_local_linear(raw, target, target_range=(0.0, 5.0))
    spread = float(np.ptp(raw))
    grid = np.exp(np.linspace(np.log(spread / 200), np.log(spread / 2), 25))
    errors = [leave_one_out_slowly(raw, target, map_, bandwidth) for bandwidth in grid]
    chosen = leave_one_out_slowly(raw, target, map_, map_.bandwidth)
    assert chosen <= min(errors) * 1.01


def test_raw_scores_that_are_all_equal_cannot_be_calibrated() -> None:
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


def test_a_temperature_of_answers_that_are_all_right_is_the_least_there_is() -> None:
    said = np.log(np.array([[0.6, 0.4], [0.3, 0.7]]))
    assert fit_temperature(said, np.array([0, 1])) == pytest.approx(1 / 20, rel=0.05)
