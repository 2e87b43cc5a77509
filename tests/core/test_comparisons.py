"""Comparisons of embeddings and readings of class probabilities, against values worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.scoring import DIGITS, cosine, exp_l1, expected_rating, probabilities, round_significant, rounded, to_unit

ROWS = arrays(np.float32, st.tuples(st.just(3), st.integers(1, 5)), elements=st.floats(-(2.0**100), 2.0**100, width=32))


def rows(*values: list[float]) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_cosine_by_hand() -> None:
    a = rows([1, 0], [3, 4], [1, 2], [1, 1])
    b = rows([0, 5], [6, 8], [-1, -2], [1, 0])
    assert cosine(a, b) == pytest.approx([0.0, 1.0, -1.0, math.sqrt(0.5)], abs=1e-15)


@given(ROWS)
def test_cosine_is_finite_bounded_and_one_for_equal_rows(x: np.ndarray) -> None:
    backwards = x[:, ::-1]
    found = cosine(x, backwards)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1.0).all()
    assert found.tolist() == cosine(backwards, x).tolist()
    assert cosine(x, x).tolist() == [1.0 if row.any() else 0.0 for row in x]


def test_cosine_does_not_overflow_or_vanish_in_float32() -> None:
    huge, tiny = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal
    assert cosine(rows([huge, huge], [tiny, 0]), rows([huge, huge], [tiny, 0])) == pytest.approx([1.0, 1.0], abs=1e-15)


def test_exp_l1_by_hand() -> None:
    found = exp_l1(rows([1, 2], [0, 0], [0, 0]), rows([1, 2], [0.5, -0.25], [3e38, 0]))
    assert found == pytest.approx([1.0, math.exp(-0.75), 0.0], abs=1e-15)


@given(ROWS)
def test_exp_l1_lies_between_0_and_1(x: np.ndarray) -> None:
    found = exp_l1(x, x[::-1])
    assert ((found >= 0) & (found <= 1)).all()
    assert exp_l1(x, x).tolist() == [1.0, 1.0, 1.0]


def test_probabilities_by_hand() -> None:
    found = probabilities(np.log(np.array([[1, 2, 5], [2, 2, 4]], dtype=np.float64)))
    assert found == pytest.approx(np.array([[0.125, 0.25, 0.625], [0.25, 0.25, 0.5]]), abs=1e-15)


def test_probabilities_survive_extreme_logits() -> None:
    found = probabilities(rows([1e30, 0, -1e30], [-np.inf, 0, 0]))
    assert found.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]


def test_expected_rating_by_hand() -> None:
    # 1 * 0.1 + 2 * 0.2 + 3 * 0.3 + 4 * 0.25 + 5 * 0.15
    log_p = np.log([[0.1, 0.2, 0.3, 0.25, 0.15], [0.0001, 0.0001, 0.0001, 0.0001, 0.9996]])
    assert expected_rating(log_p, (1, 2, 3, 4, 5)) == pytest.approx([3.15, 4.999], abs=1e-12)


@given(arrays(np.float32, (4, 5), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_expected_rating_stays_within_the_classes(log_p: np.ndarray) -> None:
    found = expected_rating(log_p, (1, 2, 3, 4, 5))
    assert ((found >= 1 - 1e-12) & (found <= 5 + 1e-12)).all()


def test_to_unit_is_linear_and_clips() -> None:
    assert to_unit(np.array([-1.0, 0.0, 1.0, 2.0, 4.0, 5.0]), 0.0, 4.0).tolist() == [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]


def test_answers_are_float64_whatever_came() -> None:
    half = np.ones((2, 3), dtype=np.float16)
    for found in (cosine(half, half), exp_l1(half, half), probabilities(half), expected_rating(half, (0, 1, 2))):
        assert found.dtype == np.float64


def test_seven_digits_by_hand() -> None:
    values = [0.12345674999, 0.99999996, 123.45678949, -2.00000004, 0.0, 1.0, 3.3333333333e-9]
    expected = [0.1234567, 1.0, 123.4568, -2.0, 0.0, 1.0, 3.333333e-9]
    assert rounded(np.array(values)).tolist() == expected
    assert [round_significant(value) for value in values] == expected
    many = np.array(values * 9).reshape(9, 7)
    assert rounded(many).tolist() == [expected] * 9


@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_together_numbers_are_rounded_as_alone_and_for_good(values: np.ndarray) -> None:
    found = rounded(values)
    # Half way between two, the one or the other.
    assert found.tolist() == [pytest.approx(round_significant(value), rel=1.1e-6) for value in values]
    assert rounded(found).tolist() == found.tolist()
    assert all(float(f"{value:.{DIGITS}g}") == value for value in found.tolist())
