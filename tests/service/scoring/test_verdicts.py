"""How what passages say becomes one label, with its evidence and what speaks against it."""

import pytest

from service.scoring.evidence import Found, Passage
from service.scoring.verdicts import Reading, verdict

SURE, NEVER = 0.97, 0.01


def reading(place: int, text: str, e: float, c: float, cosine: float = 0.8, last: int | None = None) -> Reading:
    return Reading(
        Found(place, cosine, 0.5), Passage(0, place, place if last is None else last, text), e, c, (1.0, 1.0)
    )


@pytest.mark.parametrize(
    ("first", "label"),
    [((SURE, NEVER), "entailed"), ((NEVER, SURE), "contradicted"), ((NEVER, NEVER), "not_stated")],
)
def test_the_nearest_passage_decides(first: tuple[float, float], label: str) -> None:
    readings = [reading(0, "We open at nine.", *first), reading(3, "Dogs bark.", NEVER, SURE, cosine=0.1)]
    if label == "not_stated":  # nothing that is near says anything
        readings = [each._replace(beside=(-6.0, -6.0)) for each in readings]
    found = verdict("We open early.", readings)
    assert found.label == label
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.probabilities[found.label] == max(found.probabilities.values())
    if label == "not_stated":
        assert found.evidence is None
        return
    assert found.evidence is not None
    assert (found.evidence.passage.first, found.evidence.label) == (0, label)
    # Its probability is that of the label against the opposite one, by this passage alone.
    opposite = verdict("We open early.", [reading(0, "We open at nine.", *first[::-1]), readings[1]]).evidence
    assert 0.9 < found.evidence.probability < 1
    assert opposite is not None
    assert opposite.probability > 0.9
    assert found.runner_up.passage.first == 3
    assert found.runner_up.label != label


def test_what_speaks_against_it_shares_no_sentence_with_the_evidence_if_it_can() -> None:
    both = reading(0, "We open at nine. Dogs bark.", 0.6, 0.3, last=1)
    alone = reading(0, "We open at nine.", SURE, NEVER)
    other = reading(2, "We open at ten.", NEVER, SURE, cosine=0.5)
    found = verdict("We open at nine.", [alone, both, other])
    assert found.evidence is not None
    assert found.evidence.passage == alone.passage
    assert found.runner_up.passage == other.passage
    assert verdict("We open at nine.", [alone, both]).runner_up.passage in (alone.passage, both.passage)


def test_a_number_that_differs_speaks_for_a_contradiction_and_is_named() -> None:
    same = verdict("It takes 5 days.", [reading(0, "It takes 5 days.", 0.5, 0.3)])
    differs = verdict("It takes 6 days.", [reading(0, "It takes 5 days.", 0.5, 0.3)])
    assert differs.probabilities["contradicted"] > same.probabilities["contradicted"]
    assert differs.runner_up.differences == ["6 days is not 5 days"]
    assert same.runner_up.differences == []


def test_a_negation_in_one_of_the_two_speaks_for_a_contradiction() -> None:
    plain = verdict("Dogs may come in.", [reading(0, "Dogs may enter.", 0.4, 0.4)])
    negated = verdict("Dogs may come in.", [reading(0, "Dogs may not enter.", 0.4, 0.4)])
    assert negated.probabilities["contradicted"] > plain.probabilities["contradicted"]


def test_a_model_whose_graph_gives_nothing_beside_is_judged_too() -> None:
    alone = reading(0, "We open at nine.", SURE, NEVER)._replace(beside=None)
    found = verdict("We open at nine.", [alone])
    assert found.label == "entailed"
    assert found.runner_up.passage == alone.passage  # there is no other


def test_certainty_without_end_is_bounded() -> None:
    found = verdict("a", [reading(0, "b", 1.0, 0.0), reading(2, "c", 0.0, 1.0)])
    assert all(0 < value < 1 for value in found.probabilities.values())
