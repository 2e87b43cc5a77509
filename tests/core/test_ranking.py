"""What an entry of an FAQ is found by, and what a ranking looks like."""

import numpy as np
import pytest
from pydantic import ValidationError

from core.ranking import ONE_STAGE, TWO_STAGES, ConfidenceFit, both_stages, of_stage, shared_words, texts_of

ALONE = {
    "model": "a", "fingerprint": "f", "intercept": -1.0, "weights": dict.fromkeys(ONE_STAGE, 1.0),
    "threshold": 0.3, "rows": 5, "calibration_error": 0.1, "fitted_by": "hand",
}  # fmt: skip
SECOND = {"rerank_model": "b", "rerank_fingerprint": "g", "rerank_top": 15}


def test_the_texts_of_an_entry() -> None:
    assert texts_of("q", "a", "question") == ("q",)
    assert texts_of("q", "a", "answer") == ("a",)
    assert texts_of("q", "a", "both") == ("q a",)
    assert texts_of("q", "a", "either") == ("q", "a")


def test_shared_words_are_counted_once_and_whatever_their_case() -> None:
    assert shared_words("The book, the BOOK!", "a book") == 0.5
    assert shared_words("book", "books") == 0.0
    assert shared_words("?!", "a book") == 0.0


def test_a_stage_says_how_its_candidate_stands_out() -> None:
    raw = [0.2, 0.8, 0.5, 0.1]
    score, lead, standing = of_stage(raw, 1)
    assert (score, lead) == (0.8, pytest.approx(0.3))
    assert standing == pytest.approx((0.8 - np.mean(raw)) / np.std(raw))
    assert of_stage(raw, 0)[1] == pytest.approx(-0.6)  # another is better: the second stage may choose so
    assert of_stage([0.3, 0.3], 0) == (0.3, 0.0, 0.0)
    assert of_stage([0.1] * 3, 0) == (0.1, 0.0, 0.0)  # whose mean is not exactly 0.1


def test_both_stages_count_alike_on_whatever_scale_they_score() -> None:
    coarse, fine = [0.5, 0.3, 0.1], [-2.0, 4.0, -5.0]
    joined = both_stages(coarse, fine)
    a, b = np.array(coarse), np.array(fine)
    expected = ((a - a.mean()) / a.std() + (b - b.mean()) / b.std()) / 2
    assert joined.tolist() == pytest.approx(expected.tolist())
    assert both_stages([100 * each + 7 for each in coarse], fine).tolist() == pytest.approx(joined.tolist())
    assert both_stages([0.9, 0.8], [1.0, 50.0]).tolist() == [0.0, 0.0]  # a draw
    assert np.argsort(-both_stages(coarse, [0.1, 0.1, 0.1])).tolist() == [0, 1, 2]


def test_the_probability_is_the_logistic_function_of_a_line() -> None:
    fit = ConfidenceFit.model_validate(ALONE)
    assert fit.probability([0.5, 0.25, 0.25, 0.0]) == 0.5
    assert fit.probability([1.0, 1.0, 1.0, 1.0]) == pytest.approx(1 / (1 + np.exp(-3.0)))


def test_a_fit_is_for_the_versions_that_it_was_fitted_for() -> None:
    alone = ConfidenceFit.model_validate(ALONE)
    assert alone.is_for(("a", "f"), None, None)
    assert alone.is_for(("a", "f"), None, 15)  # which a ranking in one stage does not read
    assert not alone.is_for(("a", "another"), None, None)
    assert not alone.is_for(("a", "f"), ("b", "g"), 15)
    both = ConfidenceFit.model_validate(ALONE | SECOND | {"weights": dict.fromkeys(TWO_STAGES, 1.0)})
    assert both.is_for(("a", "f"), ("b", "g"), 15)
    assert not both.is_for(("a", "f"), ("b", "g"), 10)
    assert not both.is_for(("a", "f"), ("b", "another"), 15)
    assert not both.is_for(("a", "f"), None, 15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": {"score": 1.0}}, "a weight for each of"),
        (SECOND, "a weight for each of"),
        ({"rerank_model": "b"}, "belong together"),
        ({"weights": dict.fromkeys(TWO_STAGES, 1.0)}, "a weight for each of"),
        ({"calibration_error": 2.0}, "less than or equal to 1"),
    ],
)
def test_half_a_fit_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ConfidenceFit.model_validate(ALONE | change)
