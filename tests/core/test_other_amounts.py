"""A claim that says another amount of the same is told from one that the passage's amounts leave open."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.other_amounts import said_in, says_another_amount
from tests.harness.hostile import HOSTILE


def other(claim: str, passage: str) -> bool:
    one, two = said_in(claim), said_in(passage)
    assert one is not None
    assert two is not None
    return says_another_amount(one, two)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The fee is \u00a32,000 per year.", "Fee: \u00a31,000 per year"),
        ("The annual fee is \u00a31,000,000.", "Fee: \u00a31,000 per year"),
        ("You pay \u00a31,000,000 each year.", "The annual fee is \u00a31,000."),
        ("The price is 200 euros.", "Price: 20 euros"),
        ("The deposit is 12 pounds.", "The deposit is \u00a315."),
        ("It takes two weeks.", "It takes 15 days."),
        ("It takes one month.", "It takes 5 days."),
        ("20 guests may stay.", "Thirty guests may stay in the hut."),
        ("Cut a hole of 8 inches.", "Cut a 3/8 inch hole."),
        ("The fee is \u00a320 for 3 hours.", "For 3 hours the fee is \u00a350."),
        ("The room is open on Sunday.", "The room is open Monday to Friday."),
        ("The class is on Saturday.", "The class is from Mon-Fri."),
        ("The shop opens at 9 pm.", "The shop opens at 9 am and closes at 5 pm."),
        ("The train leaves at 9 pm.", "The train leaves at 9 am."),
        ("Check-in starts at 3 am.", "Check-in is from 3 pm."),
        ("It is open at 8 pm.", "It is open from 9 am to 5 pm."),
        ("The maximum weight is 32 kg.", "Maximum weight: 23 kg"),
        ("Customers have a maximum weight of 32 kg.", "The maximum weight for customers is 23 kg."),
        ("The minimum stay is 2 nights.", "There is a minimum stay of three nights."),
    ],
)
def test_another_amount_of_the_same(claim: str, passage: str) -> None:
    assert other(claim, passage)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The fee is \u00a31,000 a year.", "Fee: \u00a31,000 per year"),
        ("It takes two weeks.", "It takes 14 days."),
        ("The fee is not \u00a32,000.", "Fee: \u00a31,000 per year"),
        ("20 people may come.", "Ten or more people may come."),
        ("At least 5 people came.", "Nine people came."),
        ("Five dogs may come.", "Ten people may come, and dogs."),  # these are counts of other things
        ("The fee is \u20ac20.", "The fee is $50."),  # currencies are not converted
        ("A room at \u00a3150 is within the rules.", "The limit is \u00a3170 for a room."),
        ("It is open on 4 May.", "It is open on 3 May."),
        ("A tool returned at 8.30 a.m. is free.", "A tool is free if returned by 9 a.m."),
        ("The room is open on Tuesday.", "The room is open Monday to Friday."),
        ("The room is open on Saturday.", "The room is not open on Sunday."),
        ("The room is open on Saturday.", "The room is open every day except Sunday."),
        ("The room is closed on Sunday.", "The room is open Monday to Friday."),
        ("It is open at 10 am.", "It is open from 9 am to 5 pm."),
        ("The train leaves at 5 pm.", "The train leaves at 5:00."),
        ("The maximum stay is 14 days.", "The maximum stay is two weeks."),
        ("You may stay 3 weeks.", "The maximum stay is 2 weeks."),
        ("The poster is 50 cm by 70 cm.", "The poster is 50 by 70 cm."),
        # Computed:
        ("The bonus is \u00a39,000.", "The bonus is 18 % of \u00a350,000."),
        ("The fee is \u00a342,500.", "The fee is \u00a350,000 less 15 %."),
        ("You pay \u00a326.", "The price is \u00a320, and \u00a36 a bag."),
        ("Three hours cost \u00a327.", "The room costs \u00a39 for each of three hours."),
        ("The fee is \u00a312,000 per year.", "The fee is \u00a31,000 per month, due each year."),
        ("The fee is \u00a35.", "The fee is \u00a310, half for pupils."),
    ],
)
def test_what_may_follow_or_is_of_something_else(claim: str, passage: str) -> None:
    assert not other(claim, passage)


AMOUNTS = st.sampled_from(
    ("\u00a35", "\u00a310", "3 kg", "1/2 kg", "two weeks", "7 days", "5 %", "20 guests", "a week")
)
WORDS = st.one_of(
    AMOUNTS,
    st.sampled_from(
        (
            "fee",
            "per year",
            "annual",
            "not",
            "half",
            "is",
            ".",
            "at least",
            "in May",
            "9 am",
            "9:00",
            "Mon-Fri",
            "Sunday",
        )
    ),
)
TEXTS = st.one_of(HOSTILE, st.text(max_size=40), st.lists(WORDS, max_size=10).map(" ".join))


@given(TEXTS, TEXTS)
@example("3 or 5 kg", "2/3 days 12 pounds 5")
def test_any_two_texts_are_compared_and_none_says_another_amount_than_itself(text: str, more: str) -> None:
    one, two = said_in(text), said_in(more)
    if one and two:
        says_another_amount(one, two)
        assert not says_another_amount(one, one)


@given(AMOUNTS, st.integers(1, 999), st.integers(1, 999))
def test_the_order_of_words_and_the_spelling_of_an_amount_do_not_matter(around: str, one: int, two: int) -> None:
    passage = f"Fee: ${one} per year ({around})"
    for claim in (f"The annual fee is {two} dollars", f"USD {two}.00 is the fee each year", f"Per year you pay ${two}"):
        assert not other(claim, passage) or one != two
        assert other(claim, f"Fee: ${one} per year") == (one != two)


def test_a_text_of_very_many_amounts_is_not_compared() -> None:
    assert said_in("$5 " * 1000) is None
