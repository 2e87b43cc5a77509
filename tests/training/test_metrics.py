"""Measures of agreement on small cases with known answers."""

import numpy as np
import pytest

from training.metrics import graded, labelled


def test_graded_by_hand() -> None:
    # x deviates (-1.5, -0.5, 0.5, 1.5), y (-1.5, 0.5, -0.5, 1.5): r = 4 / 5, and the values are their own ranks.
    found = graded([1, 2, 3, 4], [1, 3, 2, 4])
    assert found == pytest.approx({"pearson": 0.8, "spearman": 0.8, "mse": 0.5})


def test_spearman_sees_the_order_only_and_mse_the_distance() -> None:
    gold = np.array([1.0, 2.0, 3.0, 4.0])
    found = graded(np.exp(gold), gold)
    assert found["spearman"] == pytest.approx(1.0)
    assert 0.8 < found["pearson"] < 0.99
    assert graded(gold + 2, gold) == pytest.approx({"pearson": 1.0, "spearman": 1.0, "mse": 4.0})
    assert graded(-gold, gold)["pearson"] == pytest.approx(-1.0)


@pytest.mark.parametrize(("predicted", "gold"), [([2, 2, 2], [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([1], [2])])
def test_a_constant_has_no_correlation_and_gets_zero(predicted: list[float], gold: list[float]) -> None:
    found = graded(predicted, gold)
    assert (found["pearson"], found["spearman"]) == (0.0, 0.0)
    assert found["mse"] == pytest.approx(np.mean((np.array(predicted) - np.array(gold)) ** 2))


def test_labelled_by_hand() -> None:
    gold = ["entailment", "entailment", "neutral", "neutral", "contradiction"]
    predicted = ["entailment", "neutral", "neutral", "neutral", "entailment"]
    # F1: entailment 1/2 and 1/2 -> 0.5; neutral 2/3 and 1 -> 0.8; contradiction 0.
    assert labelled(predicted, gold) == pytest.approx({"accuracy": 0.6, "macro_f1": 1.3 / 3})
    assert labelled(gold, gold) == {"accuracy": 1.0, "macro_f1": 1.0}
