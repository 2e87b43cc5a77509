"""How what passages say becomes one label, with its evidence and what speaks against it."""

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.facts import amounts_of
from service.scoring.evidence import Found, Passage
from service.scoring.verdicts import Reading, features_of, verdict

SURE, NEVER = 0.97, 0.01


def reading(place: int, text: str, e: float, c: float, cosine: float = 0.8, last: int | None = None) -> Reading:
    return Reading(
        Found(place, cosine, 0.5), Passage(0, place, place if last is None else last, text, text), e, c, (1.0, 1.0)
    )


@pytest.mark.parametrize(
    ("first", "label"),
    [((SURE, NEVER), "entailed"), ((NEVER, SURE), "contradicted"), ((NEVER, NEVER), "not_stated")],
)
def test_the_nearest_passage_decides(first: tuple[float, float], label: str) -> None:
    readings = [reading(0, "We open at nine.", *first), reading(3, "Dogs bark.", NEVER, SURE, cosine=0.1)]
    if label == "not_stated":  # nothing that is near says anything
        readings = [each._replace(aux_scores=(-6.0, -6.0)) for each in readings]
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


def test_a_model_whose_graph_gives_nothing_beside_is_judged_too() -> None:
    alone = reading(0, "We open at nine.", SURE, NEVER)._replace(aux_scores=None)
    found = verdict("We open at nine.", [alone])
    assert found.label == "entailed"
    assert found.runner_up.passage == alone.passage  # there is no other


def test_certainty_without_end_is_bounded() -> None:
    found = verdict("a", [reading(0, "b", 1.0, 0.0), reading(2, "c", 0.0, 1.0)])
    assert all(0 < value < 1 for value in found.probabilities.values())


def test_a_mixture_by_hand() -> None:
    """How near each passage is decides how much counts what it says."""
    near, far = (
        Reading(Found(i, cosine, words), Passage(0, i, i, text, text), e, c, beside)
        for i, (cosine, words, text, e, c, beside) in enumerate(
            [
                (0.75, 0.5, "It takes 5 days.", 0.125, 0.5, (2.0, 1.0)),
                (0.5, 1.0, "It is not so.", 0.5, 0.125, (-1.0, 3.0)),
            ]
        )
    )
    claim = "It takes 6 days."
    shares = [exp(13.67 * (0.75 + 0.21 * 0.5 + 0.04 * 2 - 0.03)), exp(13.67 * (0.5 + 0.21 - 0.04 - 0.03 * 3))]
    said = [
        (1.37 * log(0.625) + 0.12 * 0.75 + 1.07 * 2 + 1.6, 0.73 * log(0.25) + 0.2),
        (1.37 * log(0.625) + 0.12 * 0.5 - 1.07 + 1.6, 0.73 * log(4) + 0.2),
    ]
    masses = [
        [share * exp(stated + sign * entailed) / (1 + exp(stated + entailed) + exp(stated - entailed)) / sum(shares)
         for share, (stated, entailed) in zip(shares, said, strict=True)]
        for sign in (1, -1)
    ]  # fmt: skip
    found = verdict(claim, [near, far])
    entailed, contradicted = map(sum, masses)
    assert found.probabilities == {
        "entailed": pytest.approx(entailed, rel=1e-6),
        "contradicted": pytest.approx(contradicted, rel=1e-6),
        "not_stated": pytest.approx(1 - entailed - contradicted, rel=1e-5),
    }
    assert (found.label, found.evidence and found.evidence.passage) == ("contradicted", near.passage)
    assert (found.runner_up.label, found.runner_up.passage) == ("entailed", far.passage)
    assert found.runner_up.probability == pytest.approx(masses[0][1] / (masses[0][1] + masses[1][1]), rel=1e-6)


@pytest.mark.parametrize(
    ("claim", "text", "e", "c"),
    [
        ("It takes 6 days.", "It takes 5 days.", 0.6, 0.2),  # the model may judge
        ("It takes 6 days.", "It takes 5 to 7 days.", 0.6, 0.2),
        ("It costs $12.", "It costs 12 EUR.", 0.0, 0.6),
        ("The balance is -$50.", "The balance is $50.", 0.0, 0.6),
        ("It costs $12.", "It costs 12 EUR or 12 dollars.", 0.6, 0.2),
        ("You pay $10.", "You pay 10 %.", 0.0, 0.6),
        ("It takes 12 weeks.", "It takes 12 months.", 0.0, 0.6),
        ("50 cars were sold.", "20 cars were sold here and 30 cars there.", 0.0, 0.0),
        ("60 cars were sold.", "20 cars were sold here and 30 cars there.", 0.6, 0.2),
        ("30 cars were sold.", "20 cars were sold here and 30 cars there.", 0.6, 0.2),
    ],
)
def test_other_units_never_entail_and_sums_are_not_stated(claim: str, text: str, e: float, c: float) -> None:
    stated, entailed = features_of(reading(0, text, 0.6, 0.2), amounts_of(claim), amounts_of(text))
    least = 1e-3
    assert stated == (pytest.approx(log(max(e + c, least))), 0.8, 1.0, 1.0)
    assert entailed == (log(max(e, least)) - log(max(c, least)), 1.0)


def test_what_differs_is_named() -> None:
    found = verdict("It takes 6 days.", [reading(0, "It takes 5 days.", NEVER, SURE)])
    assert found.evidence is not None
    assert found.evidence.differences == ["6 days is not 5 days"]


@given(
    answers=st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(-1, 1), st.floats(-9, 9)), min_size=1, max_size=5
    ),
    own=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.5, 1)),
)
def test_a_passage_with_the_words_of_the_claim_entails_it(
    answers: list[tuple[float, float, float, float]], own: tuple[float, float, float]
) -> None:
    """Whatever the model says of it, and of the others."""
    others = [
        reading(i + 1, "Dogs bark 3 times.", e, c, cosine)._replace(aux_scores=(more, more))
        for i, (e, c, cosine, more) in enumerate(answers)
    ]
    e, c, cosine = own
    same = reading(0, "Dogs bark 2 times.", e, c, cosine)._replace(same_words=True)
    found = verdict("Dogs bark 2 times.", [*others, same])
    assert found.label == "entailed"
    assert found.evidence is not None
    assert found.evidence.passage == same.passage
