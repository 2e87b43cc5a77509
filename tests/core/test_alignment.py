"""What a claim and a passage say alike is written alike, and nothing else is changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.alignment import amounts_in, in_one_spelling, whole_amounts, written_alike
from core.facts import facts_of
from core.units import UNITS
from tests.harness.hostile import HOSTILE


def alike(claim: str, passage: str) -> str:
    return written_alike(claim, whole_amounts(claim), passage, amounts_in(passage))


@pytest.mark.parametrize(
    ("claim", "passage", "written"),
    [
        ("within a month, please", "It is due within 30 days.", "within 30 days, please"),
        ("built in 1921-05-03", "Of 3 May 1921.", "built in 3 May 1921"),
        ("At least 60 % came.", "Turnout was 62 %.", "62 % came."),
        ("At least 60 % came.", "Turnout was 58 %.", "At least 60 % came."),
        ("Up to twenty days are free.", "Up to eight days are free.", "Up to twenty days are free."),
        ("It takes up to a week.", "It takes 5 to 7 days.", "It takes 5 to 7 days."),
        ("It takes up to six days.", "It takes 5 to 7 days.", "It takes up to six days."),
        ("Two months ahead.", "Up to 60 days ahead.", "Up to 60 days ahead."),
        ("Nobody takes more than eight.", "There is a fee for eight.", "Nobody takes more than eight."),
        ("It opens once a week.", "Open up to seven days ahead.", "It opens once a week."),
        ("Two months ahead.", "After 60 days.", "Two months ahead."),
        ("Fifty days ahead.", "Up to 60 days ahead.", "Fifty days ahead."),
        ("It ends after two weeks.", "It lasts for 21 days.", "It ends after two weeks."),  # a condition, no bound
        ("The fee is over 20 euros.", "The fee is over 30 euros.", "The fee is over 30 euros."),
        ("The fee is at most 30 euros.", "It is less than 30 euros.", "The fee is less than 30 euros."),
        ("At least 20 people came.", "Over 30 people came.", "Over 30 people came."),
        ("It takes under 3 hours.", "It takes less than 2 hours.", "It takes less than 2 hours."),
        ("At least 40 people came.", "Over 30 people came.", "At least 40 people came."),
        # Of these a wider bound does not follow:
        ("Orders over 20 euros ship free.", "Orders over 30 euros ship free.", "Orders over 20 euros ship free."),
        ("Nobody pays over 20 euros.", "Nobody pays over 30 euros.", "Nobody pays over 20 euros."),
        ("If it is over 20 degrees.", "If it is over 30 degrees.", "If it is over 20 degrees."),
        ("The minimum stay is 2 nights.", "The minimum stay is 3 nights.", "The minimum stay is 2 nights."),
        ("Take at most 6 tablets a day.", "Take at most 4 tablets a day.", "Take at most 6 tablets a day."),
        ("At most 6 tablets a day.", "At most 4 tablets a day.", "At most 6 tablets a day."),
        (
            "Rooms costing over 20 euros are large.",
            "Those costing over 30 euros.",
            "Rooms costing over 20 euros are large.",
        ),
        ("You may pay at most 9 euros.", "You may pay at most 8 euros.", "You may pay at most 9 euros."),
        ("It is paid in May.", "It was paid on 3 May.", "It is paid in May."),
        ("It costs \u20ac12.", "It costs $12.", "It costs \u20ac12."),
        ("24 months or 1.5 kg", "two years or 1500 g", "two years or 1500 g"),
        ("no amounts", "12 kg", "no amounts"),
        ("Half of it is paid.", "50% of it is paid.", "50% of it is paid."),
        ("Up to half of it is paid.", "Up to 50 % of it is paid.", "Up to 50 % of it is paid."),
        ("Three quarters of them agreed.", "75 % agreed.", "75 % of them agreed."),
        ("A third of them came.", "33 % came.", "33 % of them came."),
        ("33 % came.", "One in three came.", "One in three came."),
        ("34 % came.", "One in three came.", "34 % came."),
        ("More than a third of them came.", "33 % came.", "More than a third of them came."),
        ("The plan has 5 GB/month.", "It has 5 GB per month.", "The plan has 5 GB per month."),
    ],
)
def test_what_is_equal_is_written_as_the_passage_has_it(claim: str, passage: str, written: str) -> None:
    assert alike(claim, passage) == written


PIECES = st.sampled_from(
    ("within", "a month", "30 days", "$12", "12", "up to", "3 May", "1.5 kg", "not", "x", "%", " ")
)
TEXTS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=10).map(" ".join))


@given(TEXTS, TEXTS)
def test_a_text_is_not_changed_by_itself_and_a_rewritten_claim_is_left_as_it_is(claim: str, passage: str) -> None:
    assert alike(claim, claim) == claim
    once = alike(claim, passage)
    assert not amounts_in(passage) or alike(once, passage) == once


@given(HOSTILE, HOSTILE)
def test_no_text_raises(claim: str, passage: str) -> None:
    once = in_one_spelling(claim)
    assert alike(once, once) == once
    alike(claim, passage)


NUMBERS = st.one_of(st.integers(0, 10**7).map(str), st.decimals(0, 10**4, places=2).map(str))
AMOUNTS = st.one_of(
    st.tuples(NUMBERS, st.sampled_from((" ", "-")), st.sampled_from(sorted(UNITS))).map("".join),
    st.sampled_from(("5 pm", "7:30 a.m.", "noon", "3 May", "1921-05-03", "\u20ac12,50", "$1.5m", "-4 \u00b0F", "1h30")),
)


@given(AMOUNTS)
def test_one_spelling_of_an_amount_is_the_same_amount(amount: str) -> None:
    once = in_one_spelling(amount)
    assert facts_of(once).spellings.keys() == facts_of(amount).spellings.keys()
    assert in_one_spelling(once).split() == once.split()
