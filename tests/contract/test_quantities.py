"""What a text says in numbers, and where two texts say something else."""

import pytest

from contract.quantities import differences, quantities, within_ranges


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
        ("a 30-day trial", "a 14-day trial", ["30-day is not 14-day"]),
        ("It lasts 2 years.", "It lasts twenty-four months.", []),
        ("order 4711, 3 kg", "order 4712, 4000 g", ["3 kg is not 4000 g", "4711 is not 4712"]),
        ("one of them", "two of them", []),  # "one" is more often no number
        ("no number", "3 of them", []),
    ],
)
def test_numbers_that_differ_are_told_each_once(claim: str, passage: str, said: list[str]) -> None:
    assert sorted(told(claim, passage)) == sorted(said)
