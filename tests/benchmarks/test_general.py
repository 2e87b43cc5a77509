"""`python -m benchmarks.general`: the sets that were written, and the measures."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from benchmarks.general import sets
from benchmarks.general.measures import (
    contrast_shares,
    entailment_figures,
    followed,
    near_misses,
    order,
    ranking_figures,
    raw_scores,
)
from benchmarks.general.sets import Contrast, Question
from core.manifest import Manifest, ScoreTask
from core.scoring import CalibratedScores
from training.data.pairs import Pair


class Told:
    """A model that was told the score of each pair."""

    manifest: Manifest

    def __init__(self, scores: Mapping[tuple[str, str], float]) -> None:
        self.scores = scores

    def similarity(self, a: Sequence[str], b: Sequence[str], name: ScoreTask = "similarity") -> CalibratedScores:
        raw = np.array([self.scores[pair] for pair in zip(a, b, strict=True)])
        return CalibratedScores(raw, None, raw)

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        yes = [self.scores[pair] for pair in zip(premises, hypotheses, strict=True)]
        return [{"entailment": p, "neutral": 1 - p, "contradiction": 0.0} for p in yes]


# the sets


def test_the_questions_are_sound() -> None:
    asked = sets.questions()
    assert len(asked) == 30
    for question in asked:
        assert len(question.answers) == len(set(question.answers)) >= 15
        assert 0 <= question.right < len(question.answers)
    assert len({question.text for question in asked}) == 30
    for domain in ("shop", "helpdesk", "city"):
        places = [question.right for question in asked if question.domain == domain]
        assert len(set(places)) == len(places) == 10  # no answer is asked for twice: others distract


def test_the_contrasts_are_sound() -> None:
    contrasts = sets.written_contrasts()
    assert len({text for each in contrasts for text in (each.original, *each.rewrites, each.edit)}) == 90


# the measures


def test_orders_and_what_is_first() -> None:
    question = Question("shop", "q", ("x", "y", "z"), 1)
    assert order(np.array([0.1, 0.3, 0.2])) == [1, 2, 0]
    assert order(np.array([1.0, 1.0])) == [0, 1]  # the earlier one of equals
    figures = ranking_figures([question, question], [[1, 2, 0], [2, 1, 0]])
    assert figures == {"first": 1.0, "first_shop": 1.0, "mrr": 0.75}
    told = Told({("q", "x"): 0.1, ("q", "y"): 0.3, ("q", "z"): 0.2})
    assert [raw.tolist() for raw in raw_scores(told, [question, question], "similarity")] == [[0.1, 0.3, 0.2]] * 2


def test_rewrites_above_edits() -> None:
    told = Told({("s", "r1"): 0.9, ("s", "r2"): 0.4, ("s", "e"): 0.5, ("t", "r"): 0.5, ("t", "e"): 0.5})
    contrasts = [Contrast("one", "s", ["r1", "r2"], "e"), Contrast("two", "t", ["r"], "e")]
    assert contrast_shares(told, contrasts, "similarity") == {"all": 0.5, "one": 0.5, "two": 0.5}
    assert contrast_shares(told, [Contrast("one", "s", ["r1"], "e")], "similarity") == {"all": 1.0}


def test_calibration_of_three_labels_and_of_two() -> None:
    sure = {"entailment": 0.95, "neutral": 0.05, "contradiction": 0.0}
    unsure = {"entailment": 0.4, "neutral": 0.35, "contradiction": 0.25}
    pairs = [Pair("a", "b", label="entailment"), Pair("a", "b", label="neutral")]
    found = entailment_figures([sure, sure], pairs)
    assert found == pytest.approx({"accuracy": 0.5, "ece": 0.45, "sure": 1.0, "sure_right": 0.5})
    two = [Pair("a", "b", label="entailment"), Pair("a", "b", label="not_entailment")]
    assert entailment_figures([sure, unsure], two)["accuracy"] == 1.0  # .6 for the other two together
    assert np.isnan(entailment_figures([unsure], two[:1])["sure_right"])


def test_requests_and_statements_come_in_two_halves_that_share_no_text() -> None:
    for read, labels in ((sets.requests, ["1", "0"]), (sets.statements, ["entailment", "not_entailment"])):
        halves = [read(part) for part in sets.PARTS]
        for pairs in halves:
            assert [pair.label for pair in pairs] == labels * 15
            assert [pair.a for pair in pairs[::2]] == [pair.a for pair in pairs[1::2]]
        texts = [{text for pair in pairs for text in (pair.a, pair.b)} for pairs in halves]
        assert [len(found) for found in texts] == [45, 45]
        assert not texts[0] & texts[1]
    with pytest.raises(ValueError, match="part must be one of development, test"):
        sets.requests("train")


def test_near_misses_and_what_follows() -> None:
    pairs = [
        Pair(a, b, label=label) for a, b, label in (("s", "r", "1"), ("s", "n", "0"), ("t", "r", "1"), ("t", "n", "0"))
    ]
    told = Told({("s", "r"): 0.9, ("s", "n"): 0.8, ("t", "r"): 0.5, ("t", "n"): 0.6})
    assert near_misses(told, pairs, "similarity") == {"auc": 0.5, "above": 1}
    follow = [Pair("p", "f", label="entailment"), Pair("p", "n", label="not_entailment")]
    yes, unsure = ({"entailment": p, "neutral": 0.45, "contradiction": 0.55 - p} for p in (0.5, 0.4))
    assert followed([yes, unsure], follow) == {"seen": 1, "wrongly": 0, "auc": 1.0}
    assert followed([unsure, yes], follow) == {"seen": 0, "wrongly": 1, "auc": 0.0}
