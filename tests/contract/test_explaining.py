"""Shares of a cosine: the definition written out, and sums that are the cosine."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.explaining import contributions
from contract.measures import cosine


@given(n=st.integers(1, 9), m=st.integers(1, 9), dim=st.integers(1, 6), seed=st.integers(0, 1000))
def test_all_three_sums_are_the_cosine_of_the_means(n: int, m: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(count, dim)).astype(np.float32) for count in (n, m))
    expected = cosine(*(each.astype(np.float64).mean(axis=0)[None] for each in (x, y)))[0]
    found = contributions(x, y)
    assert (found.a.shape, found.b.shape, found.pairs.shape) == ((n,), (m,), (n, m))
    for shares in found:
        assert shares.sum() == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(found.pairs.sum(axis=1), found.a, atol=1e-12)
    np.testing.assert_allclose(found.pairs.sum(axis=0), found.b, atol=1e-12)


def test_a_share_is_what_the_equation_says() -> None:
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    y = np.array([[3.0, 0.0]])
    found = contributions(x, y)  # a = (.5, 1), b = (3, 0): |a| |b| = 3 sqrt(1.25)
    assert found.a == pytest.approx([3 / (2 * 3 * math.sqrt(1.25)), 0.0])
    assert found.b == pytest.approx([1.5 / (3 * math.sqrt(1.25))])
    assert found.pairs == pytest.approx(found.a[:, None])


def test_a_sentence_of_zeros_has_no_shares() -> None:
    found = contributions(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([[2.0, 0.0]]))
    assert not any(shares.any() for shares in found)
