"""Rows that training never met follow the rows that it moved."""

import numpy as np
import pytest

from training.words.unseen import map_unseen

D = 4


def moved(ridge: float, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """start, trained, seen, map, and what comes out, for rows that all moved by one linear map."""
    rng = np.random.default_rng(0)
    start = rng.standard_normal((n, D)).astype(np.float32)
    start[0] = 0.0
    linear = np.eye(D) + 0.3 * rng.standard_normal((D, D))
    seen = rng.integers(0, 9, n)
    seen[0] = 0
    trained = start.copy()
    trained[seen > 0] = (start[seen > 0] @ linear).astype(np.float32)
    return start, trained, seen, linear, map_unseen(start, trained, seen, ridge=ridge)


def test_a_linear_movement_is_recovered() -> None:
    start, _, seen, linear, found = moved(ridge=1e-6)
    unseen = (seen == 0) & (np.arange(len(seen)) > 0)
    assert unseen.sum() > 10
    assert found[unseen] == pytest.approx(start[unseen] @ linear, abs=1e-4)
    assert found.dtype == np.float32


def test_seen_rows_and_padding_stay() -> None:
    start, trained, seen, _, found = moved(ridge=10.0)
    assert np.array_equal(found[seen > 0], trained[seen > 0])
    assert not found[0].any()
    assert np.abs(found[seen == 0][1:] - start[seen == 0][1:]).max() > 0.1


def test_rows_seen_too_rarely_do_not_bend_the_map() -> None:
    start, trained, seen, linear, _ = moved(ridge=1e-6)
    trained[(seen > 0) & (seen < 5)] += 100.0
    found = map_unseen(start, trained, seen, minimum=5, ridge=1e-6)
    assert found[seen == 0][1:] == pytest.approx(start[seen == 0][1:] @ linear, abs=1e-4)
