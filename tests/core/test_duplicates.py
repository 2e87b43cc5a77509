"""Verdicts on pairs, and groups: what is never allowed to happen, whatever models say."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.duplicates import (
    JOINED_FROM,
    MIN_COSINE,
    NOTED_COSINE,
    CandidatePair,
    DuplicateDecision,
    OnePlace,
    PairReading,
    find_candidates,
    left_apart,
    nearest_texts,
    one_place,
    probability,
    questions,
)
from core.facts import facts_of
from core.groups import MAX_WAYS, ContradictoryAnswers, KeptApart, group

SHARE = st.floats(0, 1)
PLACES = st.sampled_from([None, OnePlace("a", "b")])
TEXTS = ["order 1 is late", "order 2 is late", "order 1 is very late", "the order is late", "order 3 is late"]


@given(SHARE, SHARE, SHARE, SHARE, SHARE, SHARE, st.booleans(), PLACES)
def test_no_evidence_lowers_a_verdict(
    cosine: float,
    higher: float,
    same: float,
    more: float,
    entailed: float,
    further: float,
    near: bool,
    place: OnePlace | None,
) -> None:
    before = probability(cosine, PairReading(same, entailed), near, place)
    raised = PairReading(max(same, more), max(entailed, further))
    assert probability(max(cosine, higher), raised, near, place) >= before
    assert probability(cosine, PairReading(same, entailed), True, place) >= before
    assert probability(cosine, PairReading(same, entailed), near, None) >= before
    assert probability(max(cosine, higher), None, near) >= probability(cosine, None, near)
    assert 0 <= before <= 1


@given(SHARE, SHARE, SHARE)
def test_what_the_rule_joins_that_everybody_would_write_first_is_joined_with_its_nearest(
    cosine: float, same: float, entailed: float
) -> None:
    joined = probability(cosine, PairReading(same, entailed), True) >= JOINED_FROM
    assert joined or (cosine + same) / 2 < 0.65


def test_a_model_that_is_sure_joins_and_one_that_is_not_parts() -> None:
    assert (
        probability(0.9, PairReading(0.95, 0.9), True) > JOINED_FROM > probability(0.9, PairReading(0.1, 0.02), False)
    )


@given(st.tuples(SHARE, SHARE), st.tuples(SHARE, SHARE))
def test_the_order_of_two_texts_says_nothing(same: tuple[float, float], entailed: tuple[float, float]) -> None:
    there = PairReading.of_both_orders(same, entailed, False)
    assert there == PairReading.of_both_orders((same[1], same[0]), (entailed[1], entailed[0]), False)
    assert min(same) <= there.paraphrase <= max(same)


@pytest.mark.parametrize(
    ("a", "b", "parted"),
    [
        ("Please cancel", "Please dont cancel", True),
        ("Please cancel my order", "Please do not cancel my order 12", True),
        ("The product arrived damaged.", "The product arrived undamaged.", True),
        (
            "There are no screws in the box of the shelf, I cannot put it up",
            "The shelf came, its screws are missing",
            False,
        ),
        ("2FA is on", "Is the card still not on its way? 2 weeks now", False),
    ],
)
def test_a_negation_parts_two_texts_that_are_much_alike(a: str, b: str, parted: bool) -> None:
    kept_apart = KeptApart([facts_of(a), facts_of(b)])
    assert (kept_apart.between((0, 1)) is not None) == parted


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ("how do i reset it", "how can you reset it", None),
        ("log in page is blank", "login page is blank", None),
        ("parcel is in hall", "parcel is in my car", ("hall", "my car")),
        ("parcel is in hall", "parcel is in my old car", None),
        ("app crashes when I open photo", "app crashes when I take photo", ("open", "take")),
        ("hdmi to usb c adapter", "usb c to hdmi adapter", ("", "")),
        ("line 20 is late", "line 20b is late", ("20", "20b")),  # no number is a misspelt one
        ("line 20 is late", "line 21 is late", ("20", "21")),
        ("hotel bellevue luzern", "bellevue hotel luzern", None),  # no order that means something
        ("main street 4", "main str 4", None),
        ("an adaptor of glass", "an adapter of glass", None),
        ("i forgot my pasword", "i forgot my password", None),
        ("i forgto it", "i forgot it", None),
        ("red chair", "red chair with arms", None),  # says more
        ("a red chair and a table", "one red chair and tables", None),  # in two places
        ("the same", "the same", None),
        ("only admins may delete users", "admins may only delete users", ("", "")),
    ],
)
def test_texts_that_differ_in_one_place(a: str, b: str, found: tuple[str, str] | None) -> None:
    assert one_place(a.split(), b.split()) == found
    assert one_place(b.split(), a.split()) == (found and found[::-1])


def test_candidates_are_the_nearest_of_each_and_what_is_near_beyond() -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(60, 8)).astype(np.float32)
    vectors[7] = vectors[3]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    order = np.argsort(-cosines, axis=1, kind="stable")
    expected = {
        (min(i, j), max(i, j))
        for i in range(60)
        for rank, j in enumerate(order[i].tolist())
        if cosines[i, j] >= (MIN_COSINE if rank < 3 else NOTED_COSINE)
    }
    decision = DuplicateDecision([["a"]] * 60, find_candidates(nearest_texts(vectors, 20)), None)
    found = decision.candidates
    assert {each.pair for each in found} == expected
    for (a, b), cosine, nearest in found:
        assert cosine == pytest.approx(cosines[a, b], abs=1e-6)
        assert nearest == min((order[a] == b).nonzero()[0][0], (order[b] == a).nonzero()[0][0])
    assert not find_candidates(nearest_texts(vectors[:1], 20))


def test_texts_that_a_fact_keeps_apart_take_no_place_among_those_that_are_read() -> None:
    texts = [f"{said} {number}" for number in range(1, 9) for said in ("parcel not here, order", "waiting for order")]
    vectors = np.array([[1.0, 0.4 * (i % 2), 0.01 * i] for i in range(len(texts))], dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    facts = KeptApart([facts_of(text) for text in texts])
    decision = DuplicateDecision([text.split() for text in texts], find_candidates(nearest_texts(vectors, 20)), facts)
    read = [decision.candidates[i].pair for i in decision.to_read]
    assert read == [(i, i + 1) for i in range(0, len(texts), 2)]
    assert all(decision.nearest[i] for i in decision.to_read)


def test_a_chain_of_near_texts_is_no_group_where_its_ends_were_read() -> None:
    scores = {pair: 0.9 if pair[1] - pair[0] == 1 else 0.0 for pair in combinations(range(9), 2)}
    assert max(np.bincount(group(9, scores, 0.5, None, {}))) == 2
    assert group(3, {(0, 1): 0.9, (1, 2): 0.9}, 0.5, None, {}) == [0, 0, 0]  # what nobody read does not count
    assert group(4, {(2, 3): 0.5, (0, 1): 0.49}, 0.5, None, {}) == [0, 1, 2, 2]


@given(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda p: p[0] < p[1]), SHARE))
def test_no_group_holds_two_texts_that_differ_in_a_fact(scores: dict[tuple[int, int], float]) -> None:
    apart = KeptApart([facts_of(text) for text in TEXTS])
    first = group(5, scores, 0.3, apart, {})
    for a, b in combinations(range(5), 2):
        assert first[a] != first[b] or apart.between((a, b)) is None
    assert all(first[lead] == lead <= text for text, lead in enumerate(first))


SAYINGS = (
    "does not leak",
    "leaks",
    "5 kg",
    "6 kg",
    "5 to 7 kg",
    "603",
    "603XL",
    "May 2021",
    "3 May 2021",
    "red",
    "blue",
)
SAID = st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=4, unique=True).map(", ".join)


@given(st.lists(SAID, min_size=2, max_size=5))
def test_groups_are_joined_just_where_no_two_texts_of_them_differ(texts: list[str]) -> None:
    apart = KeptApart([facts_of(text) for text in texts])
    grown = [0]
    for text in range(1, len(texts)):
        scores = dict.fromkeys(combinations([*grown, text], 2), 1.0)
        joined = len({group(len(texts), scores, 0.5, apart, {})[i] for i in (*grown, text)}) == 1
        assert joined == all(apart.between((other, text)) is None for other in grown)
        grown += [text] * joined


def test_many_near_texts_are_grouped_without_comparing_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def sets_differ(_: KeptApart, a: int, b: int) -> bool:
        nonlocal compared
        compared += 1
        return False

    monkeypatch.setattr(KeptApart, "sets_differ", sets_differ)
    weights = ("5 kg", "5-6 kg", "4-5 kg")
    texts = [f"Parcel {chr(97 + i % 26)}{i % 7 * 'x'} came, {weights[i % 3]}, on {i % 40} dates" for i in range(600)]
    scores = {(a, a + step): 0.9 for a in range(600) for step in range(1, 21) if a + step < 600}
    group(600, scores, 0.3, KeptApart([facts_of(text) for text in texts]), {})
    assert 0 < compared < 600 * 20 * MAX_WAYS


def test_a_person_is_right_whatever_scores_and_facts_say() -> None:
    scores = {(0, 2): 0.9, (3, 4): 0.9}
    answers = {(0, 1): True, (3, 4): False, (0, 2): False}
    assert group(5, scores, 0.5, KeptApart([facts_of(text) for text in TEXTS]), answers) == [0, 0, 2, 3, 4]
    with pytest.raises(ContradictoryAnswers) as refused:
        group(5, scores, 0.5, None, {(0, 1): True, (1, 2): True, (0, 2): False})
    assert refused.value.pair == (0, 2)


def test_every_pair_is_joined_asked_about_or_listed_with_its_reason() -> None:
    pairs = list(combinations(range(5), 2))
    candidates = [CandidatePair(pair, 0.9 - i / 100, i % 5) for i, pair in enumerate(pairs)]
    decision = DuplicateDecision(
        [text.split() for text in TEXTS], candidates, KeptApart([facts_of(text) for text in TEXTS])
    )
    readings = [PairReading(i / 5, i / 5) for i in range(len(decision.to_read))]
    first, judged = decision.decide(readings)
    asked = questions(judged, 5)
    listed = left_apart(judged, asked)
    assert {each.pair for each in judged} == set(pairs)
    for each in judged:
        assert each.joined == (first[each.pair[0]] == first[each.pair[1]])
        assert each.joined or each in asked or each in listed
        assert each.why
    reasons = {each.pair: each.why for each in judged}
    assert reasons[0, 1].startswith("1 is not 2; cosine 0.90")
    assert reasons[0, 4].startswith("1 is not 3")
    assert not any(i in decision.apart for i in decision.to_read)
    doubts = [abs((each.probability or 0) - JOINED_FROM) for each in asked]
    assert doubts == sorted(doubts)


def test_a_review_has_a_row_for_five_texts() -> None:
    candidates = [CandidatePair((i, i + 1), 0.75, 0) for i in range(0, 400, 2)]
    decision = DuplicateDecision([[str(i)] for i in range(400)], candidates, None)
    _, judged = decision.decide(None)
    assert len(questions(judged, 400)) == 80


def test_reasons_are_short_however_long_the_words_are() -> None:
    words = [[f"{'x' * 50_000}{n}", "cat"] for n in range(2)]
    facts = KeptApart([facts_of(f"the code {'1a' * 5000}{n}") for n in range(2)])
    candidate = CandidatePair((0, 1), 0.9, 0)
    for apart in (None, facts):
        _, (judged,) = DuplicateDecision(words, [candidate], apart).decide(None)
        assert len(judged.why) < 400


def test_texts_that_differ_in_words_unknown_to_a_model_are_not_joined_by_it() -> None:
    """Where it knows all words, or one text says no other unknown thing, it is believed."""
    texts = [
        ("great product \U0001f44d", "great product \U0001f44e"), ("\u8c22\u8c22", "a b"), ("k" * 200, "j" * 200),
        ("great product \U0001f44d", "great product"), ("a product \U0001f44d", "this product \U0001f44d"),
    ]  # fmt: skip
    for i, words in enumerate(texts):
        decision = DuplicateDecision([text.split() for text in words], [CandidatePair((0, 1), 1.0, 0)], None)
        for unknown in (True, False):
            first, (judged,) = decision.decide([PairReading(1.0, 0.99, unknown)])
            assert judged.joined == (first == [0, 0]) == (not unknown or i > 2)
            assert judged.joined == ("could not be read" not in judged.why)
        assert decision.decide(None)[0] == ([0, 1] if i < 3 else [0, 0])


def test_texts_without_letters_are_not_joined_whatever_a_model_says() -> None:
    for words in ([["..."], ["???"]], [["a", "dog"], ["!"]]):
        decision = DuplicateDecision(words, [CandidatePair((0, 1), 0.9, 0)], None)
        for readings in (None, [PairReading(1.0, 0.99)]):
            first, (judged,) = decision.decide(readings)
            assert first == [0, 1]
            assert "could not be read" in judged.why
