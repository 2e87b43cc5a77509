"""Measures of agreement on small cases with known answers."""

import numpy as np
import pytest

from training.objectives.metrics import calibration_error, graded, ranked


def test_graded_by_hand() -> None:
    # x deviates (-1.5, -0.5, 0.5, 1.5), y (-1.5, 0.5, -0.5, 1.5): r = 4 / 5, and the values are their own ranks.
    found = graded([1, 2, 3, 4], [1, 3, 2, 4])
    assert found == pytest.approx({"pearson": 0.8, "spearman": 0.8, "mse": 0.5})


@pytest.mark.parametrize(("predicted", "gold"), [([2, 2, 2], [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([1], [2])])
def test_a_constant_has_no_correlation_and_gets_zero(predicted: list[float], gold: list[float]) -> None:
    found = graded(predicted, gold)
    assert (found["pearson"], found["spearman"]) == (0.0, 0.0)
    assert found["mse"] == pytest.approx(np.mean((np.array(predicted) - np.array(gold)) ** 2))


def test_ranked_by_hand() -> None:
    # First question: right answers at ranks 1 and 3, AP (1/1 + 2/3) / 2. Second: rank 2, AP and RR 1/2.
    scores = [0.9, 0.5, 0.7, 0.2, 0.1, 0.3]
    relevant = [True, True, False, False, True, False]
    questions = ["a", "a", "a", "b", "b", "b"]
    scores[4] = 0.25
    found = ranked(scores, relevant, questions)
    assert found == pytest.approx({"map": ((1 + 2 / 3) / 2 + 1 / 2) / 2, "mrr": (1 + 1 / 2) / 2, "questions": 2.0})


def test_a_question_without_a_right_answer_counts_nowhere() -> None:
    with_it = ranked([3, 2, 1, 9, 8], [False, True, False, False, False], ["a", "a", "a", "b", "b"])
    assert with_it == ranked([3, 2, 1], [False, True, False], ["a"] * 3)
    assert with_it["questions"] == 1
    with pytest.raises(ValueError, match="no question has a relevant candidate"):
        ranked([1.0], [False], ["a"])


def test_calibration_error_by_hand() -> None:
    # Bin 0.9..1: said 0.9 and 1, right once of two: off by 0.45. Bin 0.6..0.7: said 0.65, right: off by 0.35.
    assert calibration_error([0.9, 1.0, 0.65], [True, False, True]) == pytest.approx((2 * 0.45 + 0.35) / 3)
    assert calibration_error([1.0, 1.0], [True, True]) == 0.0
