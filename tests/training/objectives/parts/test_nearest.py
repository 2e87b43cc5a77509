"""Near neighbours: exact within a leaf, found by several trees, never the vector itself."""

import numpy as np
import pytest

from training.objectives.parts import nearest
from training.objectives.parts.nearest import near_neighbours


def on_a_circle(count: int) -> np.ndarray:
    angle = np.random.default_rng(0).permutation(count) * 2 * np.pi / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.arange(1, count + 1)[:, None]  # length must not count


def true_rank(vectors: np.ndarray, found: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    chosen = np.take_along_axis(cosines, found, axis=1)
    return (cosines[:, None, :] > chosen[:, :, None] + 1e-6).sum(axis=2)


def test_in_one_leaf_they_are_the_nearest_of_all() -> None:
    vectors = on_a_circle(101)
    found = near_neighbours(vectors, each=4, trees=1, seed=0)
    assert found.shape == (101, 4)
    assert true_rank(vectors, found).max() <= 3


def test_many_leaves_find_nearly_the_nearest_and_no_vector_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "LEAF", 40)
    vectors = np.random.default_rng(1).standard_normal((1200, 4)).astype(np.float16)
    found = near_neighbours(vectors, each=3, trees=2, seed=5)
    assert found.shape == (1200, 6)
    assert (found != np.arange(1200)[:, None]).all()
    assert all(len(set(row[:3])) == len(set(row[3:])) == 3 for row in found.tolist())
    rank = true_rank(vectors.astype(np.float64), found)
    assert np.median(rank) < 12  # of 1,199; chance: 600
    assert (found[:, :3] != found[:, 3:]).any()  # the trees differ
    again = near_neighbours(vectors, each=3, trees=2, seed=5)
    np.testing.assert_array_equal(found, again)
    assert (near_neighbours(vectors, each=3, trees=2, seed=6) != found).any()
