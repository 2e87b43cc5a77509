"""One spelling for what two texts say alike: a claim's amounts, dates and durations as a passage writes them.

A model that reads both need not know that 1921-05-03 is 3 May 1921, nor that 62 % is at least 60 %.
"""

from collections.abc import Sequence
from itertools import groupby, islice
from typing import NamedTuple

from core.facts import MAX_INEXACT, agrees, includes
from core.mentions import mentions
from core.units import SOME_BOUNDS, Fact


class Amount(NamedTuple):
    """An amount, a date or a code in a text.

    Attributes:
        facts: what its words may mean.
        start, end: its characters.
    """

    facts: tuple[Fact, ...]
    start: int
    end: int


def amounts_in(text: str) -> list[Amount]:
    """Those of a text in their order, `MAX_INEXACT` at most."""
    places = groupby(mentions(text), key=lambda each: (each.start, each.end))
    return [Amount(tuple(each.fact for each in some), *place) for place, some in islice(places, MAX_INEXACT)]


def written_alike(claim: str, own: Sequence[Amount], passage: str, other: Sequence[Amount]) -> str:
    """The claim, with what the passage says too, or a bound that it keeps, as the passage writes it.

    Args:
        claim: a text.
        own: its amounts.
        passage: another text.
        other: its amounts.
    """
    parts, after = [], 0
    spellings = {passage[each.start : each.end] for each in other}
    limits = [each for each in other if _first_word(passage, each) not in SOME_BOUNDS]  # no "after 60 days"
    for amount in own:
        written = claim[amount.start : amount.end]
        first = _first_word(claim, amount)
        if written in spellings or amounts_in(written)[:1] != [Amount(amount.facts, 0, len(written))]:
            continue  # also "more than four", which nobody may take: a negation before it is a part of the bound
        same = next((each for each in other if _is_same(amount, each)), None)
        if same is None and first not in SOME_BOUNDS:  # "after two months" is a condition
            same = next((each for each in other if _keeps(each, amount)), None)
        if same is None and first not in ("a", "an"):  # "a week" is often each week
            same = next((each for each in limits if _is_limit(amount, each)), None)
        if same is not None:
            parts += [claim[after : amount.start], passage[same.start : same.end]]
            after = amount.end
    return "".join((*parts, claim[after:]))


def _first_word(text: str, amount: Amount) -> str:
    return text[amount.start : amount.end].split(maxsplit=1)[0].lower()


def _is_same(a: Amount, b: Amount) -> bool:
    return any(x == y or (x.exact == y.exact and x.kind != "date" and agrees(x, y)) for x in a.facts for y in b.facts)


def _keeps(said: Amount, bound: Amount) -> bool:
    """Whether an exact value lies within a bound."""
    return any(not y.exact and x.exact and includes(y, x) for x in said.facts for y in bound.facts)


def _is_limit(value: Amount, bound: Amount) -> bool:
    """Whether an exact value is the one where a bound ends: two months, of up to 60 days."""
    for x in value.facts:
        for y in bound.facts:
            limit = y.low if y.high is None else y.high if y.low is None else None
            if limit is not None and x.exact and not y.strict and agrees(x, Fact(y.kind, limit, limit, y.name)):
                return True
    return False
