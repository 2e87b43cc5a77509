"""What a text says in numbers, and where two texts say something else."""

import pytest

from core.quantities import differences, has_quantity, quantities, within_ranges


def told(claim: str, passage: str) -> list[str]:
    return [str(each) for each in differences(within_ranges(quantities(claim), passage), quantities(passage))]


@pytest.mark.parametrize(
    ("claim", "passage", "said"),
    [
        ("Refunds take 14 days.", "Refunds are made within thirty days.", ["14 days is not thirty days"]),
        ("It costs \u20ac5.50.", "The fee is 5,50 EUR.", []),
        ("It costs $5.", "The fee is 7 dollars.", ["$5 is not 7 dollars"]),
        ("It costs 5 euros.", "The fee is 5 dollars.", []),  # of different kinds
        ("We are open till 5 pm.", "Open 9:00 to 17:00.", []),
        ("Open till 6 pm.", "Open till 5 p.m. at most.", ["6 pm is not 5 p.m."]),
        ("We are open till 6 p.m.", "Open till 17:30", ["6 p.m. is not 17:30"]),
        ("from 3 March 2026", "from 3 April 2026", ["March is not April"]),
        ("You may come 3 times.", "Come on May 3.", []),
        ("It takes 9 days.", "It takes 5 to 7 working days.", ["9 days is not 5 to 7 working days"]),
        ("It takes 6 days.", "It takes 5-7 business days.", []),
        ("It takes 5 days.", "It takes 5-7 business days.", []),
        ("It takes 7 days.", "It takes 5-7 business days.", []),
        ("It takes 8 days.", "It takes 5-7 business days.", ["8 days is not 5-7 business days"]),
        ("It takes 100 hours, 9 days or 8 days.", "It takes 30 weeks or 1 week.", ["8 days is not 1 week"]),
        ("a 30-day trial", "a 14-day trial", ["30-day is not 14-day"]),
        ("It lasts 2 years.", "It lasts twenty-four months.", []),
        ("order 4711, 3 kg", "order 4712, 4000 g", ["3 kg is not 4000 g", "4711 is not 4712"]),
        ("one of them", "two of them", []),  # "one" is more often no number
        ("no number", "3 of them", []),
    ],
)
def test_numbers_that_differ_are_told_each_once(claim: str, passage: str, said: list[str]) -> None:
    assert sorted(told(claim, passage)) == sorted(said)


# By kind: the value and how it is written.
SAID = {
    "12 am, 12:30 p.m., 1:05am, 23:59": [
        ("time", 0.0, "12 am"), ("time", 750.0, "12:30 p.m."), ("time", 65.0, "1:05am"), ("time", 1439.0, "23:59")
    ],
    "3 kg or 2.5 lbs": [("g", 3000.0, "3 kg"), ("g", 1133.98093, "2.5 lbs")],
    "five to seven working days": [
        ("s", 432000.0, "five to seven working days"), ("s", 604800.0, "five to seven working days")
    ],
    "2 \u2013 4 m": [("m", 2.0, "2 \u2013 4 m"), ("m", 4.0, "2 \u2013 4 m")],
    "1,000 g, 0,5 l": [("g", 1000.0, "1,000 g"), ("l", 0.5, "0,5 l")],
    "1.000,5 g, 1,234.5 g": [("g", 1000.5, "1.000,5 g"), ("g", 1234.5, "1,234.5 g")],
    "on 6.11.26": [("number", 6.0, "6.11.26"), ("number", 11.0, "6.11.26"), ("number", 26.0, "6.11.26")],
    "1.000.000, 2,000,000 and 1,5": [
        ("number", 1e6, "1.000.000"), ("number", 2e6, "2,000,000"), ("number", 1.5, "1,5")
    ],
    "third, 22nd": [("ordinal", 3.0, "third"), ("ordinal", 22.0, "22nd")],
    "$3, \u20ac 4,50": [("$", 3.0, "$3"), ("\u20ac", 4.5, "\u20ac 4,50")],
    "May 3, 3 March": [("month of the year", 5.0, "May"), ("month of the year", 3.0, "March"), ("number", 3.0, "3")],
    "M6x20, AB_12-c": [("code", "m6", "M6"), ("code", "ab12c", "AB_12-c"), ("number", 20.0, "20")],
    "603 XL, 100pcs": [("model", "603xl", "603XL"), ("number", 100.0, "100pcs")],
    "123, 12": [("number", 123.0, "123"), ("model", "123", "123"), ("number", 12.0, "12")],
    "thirty-two, seven": [("number", 32.0, "thirty-two"), ("number", 7.0, "seven")],
}  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_quantities_by_hand(text: str) -> None:
    assert quantities(text) == {(kind, value): written for kind, value, written in SAID[text]}
    assert has_quantity(text)


def test_a_text_without_digits_and_number_words_says_none() -> None:
    assert [has_quantity(text) for text in ("one cat", "seven cats", "a 4")] == [False, True, True]
