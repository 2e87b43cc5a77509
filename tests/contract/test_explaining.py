"""Shares of a cosine: the definition written out, and sums that are the cosine."""

import math

import numpy as np
import pytest

from contract.explaining import contributions


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
