"""One spelling for what two texts say alike: a claim's amounts, dates and durations as a passage writes them.

A model that reads both need not know that 1921-05-03 is 3 May 1921, nor that 62 % is at least 60 %. Where no model
reads, a text's own amounts get one spelling: 2 hrs and two hours are 120 min, two weeks are 14 day.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby, islice
from typing import NamedTuple

from core.attributes import NEGATIONS
from core.facts import MAX_AMOUNTS, MAX_CHARS, MAX_INEXACT, agrees, includes, words_between
from core.mentions import mentions
from core.numerals import plain_spelling
from core.units import ADJECTIVES, LIMITS, MARKS, MONTHS, SOME_BOUNDS, UNITS, Fact, word_set

_HALF_DAY = re.compile(r"(?<![^\W\d_])[ap]\.?m|noon|midnight", re.IGNORECASE)
_MORNING = range(60, 780)  # minutes: 1:00 to 12:59 may be of either half of the day
_MONTH_NAMES = {number: name for name, number in MONTHS.items()}
# Kinds of facts whose value is not all that they say: of a plain number 3.10 may be a section.
_AS_WRITTEN = frozenset(("number", "code", "model", "version", "ordinal"))
# With one of these a written amount says more than its value: two business days, one in four.
_SAYS_MORE = ADJECTIVES | frozenset(("points", "couple", "of", "dozen"))
_PERCENT = frozenset(("percent", "cent", "pct"))
_BOUNDS = {(True, False): "at most", (True, True): "under", (False, False): "at least", (False, True): "over"}
_WORD = re.compile(r"[^\W\d_]+")
_MAYBE_THOUSANDS = re.compile(r"\d\.\d{3}(?!\d)")  # 1.500 is 1,500 to some
# Beside a number, with which it is one then, as in 1/2 kg and -5 kg.
_GOES_ON = re.compile(r"[^\W_]|[/:*'-][^\W_]")
_WENT_ON = re.compile(r"[^\W_]$|[^\W_][/:*'-]$|(?:^|\s)-$")
_NO_WIDER = SOME_BOUNDS.keys() | LIMITS | {"max", "min", "up", "within"}  # these give a limit or a right
_BEFORE = 60  # characters before a bound that tell whether it says how much something is
# Behind these a bound says that: rooms cost over 30 euros. Behind a noun it says of which: orders over 30 euros.
_SAYING = word_set("is are was were been has have had cost costs takes took lasts lasted weigh weighs contain contains")
_SAYING |= word_set("holds held earn earns charges pay pays paid")
# With these a wider bound does not follow, or it is a rule, of which another limit is another one.
_CONDITIONS = NEGATIONS | word_set("if when unless who whoever which that whose where only few hardly rarely")
_CONDITIONS |= word_set("must shall should may can could might")


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
    """The amounts, dates and codes of a text in their order, `MAX_INEXACT` at most."""
    places = groupby(mentions(text), key=lambda each: (each.start, each.end))
    return [Amount(tuple(each.fact for each in some), *place) for place, some in islice(places, MAX_INEXACT)]


def in_one_spelling(text: str) -> str:
    """The text with each amount that has a unit, each date and time of day, if it is one value or a bound, written one
    way. Of a text with many the first `MAX_AMOUNTS`.
    """
    parts, after = [], 0
    plain = plain_spelling(text[:MAX_CHARS])
    found = groupby(islice(mentions(plain), MAX_AMOUNTS), key=lambda each: (each.start, each.end))
    for (start, end), some in found:
        facts = [each.fact for each in some]
        if {each.kind for each in facts} == {"money", "g"}:  # 20 pounds are sooner paid than weighed
            facts = facts[:1]
        alone = len(facts) == 1 and not (_WENT_ON.search(plain, max(0, start - 2), start) or _GOES_ON.match(plain, end))
        spelling = _spelling(facts[0], plain[start:end]) if alone else None
        if spelling is not None and [each.fact for each in mentions(spelling)] == facts:
            parts += [text[after:start], f" {spelling} "]
            after = end
    return "".join((*parts, text[after:]))


def _spelling(fact: Fact, written: str) -> str | None:
    """How a fact is written if it is all that its words say; None: they say more, or may mean something else."""
    words = frozenset(_WORD.findall(written.lower()))
    value = fact if fact.low == fact.high else _limit(fact)
    if value is None or value.low is None or fact.kind in _AS_WRITTEN or _MAYBE_THOUSANDS.search(written):
        return None
    if not words.isdisjoint(_SAYS_MORE) or (fact.kind == "%" and words.isdisjoint(_PERCENT) and "%" not in written):
        return None
    number, unit = value.low, fact.name or fact.kind
    if fact.kind == "date":
        month, day = divmod(int(number) % 10000, 100)
        said = (str(day or ""), _MONTH_NAMES.get(month, "").title(), str(int(number) // 10000 or ""))
        return " ".join(filter(None, said)) if day else None
    if fact.kind == "time":
        half = " am" if number < 720 and _HALF_DAY.search(written) else ""
        hour, minute = divmod(int(number), 60)
        return None if later_readings(fact, written) else f"{hour}:{minute:02d}{half}"
    if fact.kind == "s":  # who opens for 24 hours does not open for one day
        unit = "day" if any(word.startswith(("day", "week", "fortnight")) for word in words) else "min"
        number /= UNITS[unit].factor
    if fact.kind == "degree":
        unit = "\u00b0c"
    bound = "" if fact == value else _BOUNDS[fact.low is None, fact.strict]
    digits = (Decimal(number.numerator) / number.denominator).normalize()  # of 1/3 another number, which is not taken
    return f"{bound} {digits:f} {unit}".strip()


def later_readings(fact: Fact, written: str) -> list[Fact]:
    """A time of day that may be twelve hours later, read so: 5:00, but neither 5 am nor 17:00."""
    if fact.kind != "time" or _HALF_DAY.search(written) or not {fact.low, fact.high} <= {None, *_MORNING}:
        return []
    return [fact._replace(low=fact.low and fact.low + 720, high=fact.high and fact.high + 720)]


def whole_amounts(claim: str) -> list[Amount]:
    """The amounts of a claim that say all that their words do.

    Not "more than four", which nobody may take: a negation before it is a part of the bound.
    """
    found = ((each, amounts_in(claim[each.start : each.end])) for each in amounts_in(claim))
    return [each for each, alone in found if alone[:1] == [Amount(each.facts, 0, each.end - each.start)]]


def written_alike(claim: str, own: Sequence[Amount], passage: str, other: Sequence[Amount]) -> str:
    """The claim, with what the passage says too, or a bound that it keeps, as the passage writes it.

    Args:
        claim: a text.
        own: its `whole_amounts`.
        passage: another text.
        other: its amounts.
    """
    parts, after = [], 0
    spellings = {passage[each.start : each.end] for each in other}
    limits = [each for each in other if _first_word(passage, each) not in SOME_BOUNDS]  # no "after 60 days"
    for amount in own:
        written = claim[amount.start : amount.end]
        first = _first_word(claim, amount)
        if written in spellings:
            continue
        same = next((each for each in other if _is_same(amount, each)), None)
        if same is None and first not in SOME_BOUNDS:  # "after two months" is a condition
            says = _says(claim, amount)
            same = next((each for each in other if _keeps(each, amount, says and _says(passage, each))), None)
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


def _keeps(said: Amount, bound: Amount, open_too: bool) -> bool:
    """Whether a value or a range lies within a bound; `open_too`: or a narrower bound does."""
    ended = [each for each in said.facts if open_too or (each.low is not None and each.high is not None)]
    return any(not y.exact and x != y and includes(y, x) for x in ended for y in bound.facts)


def _says(text: str, amount: Amount) -> bool:
    """Whether a bound says how much something is: over 30 people work here, rooms cost over 30 euros.

    Of "orders over 30 euros ship free", "nobody pays over 30 euros" or "take at most 4 tablets" a wider bound does not
    follow; nor is a minimum of three nights one of two.
    """
    start = max(0, amount.start - _BEFORE)
    before = words_between(text, start, amount.start)
    if _first_word(text, amount) in _NO_WIDER or not _CONDITIONS.isdisjoint(before):
        return False
    if before and text[start : amount.start].rstrip()[-1] not in MARKS:
        return len(before) > 1 and before[-1] in _SAYING
    counted = [*words_between(text, amount.end, amount.end + _BEFORE), ""][0]
    return amount.facts[0].high is None and (counted in ("people", "of") or counted.endswith("s"))


def _is_limit(value: Amount, bound: Amount) -> bool:
    """Whether an exact value is the one where a bound ends: two months, of up to 60 days."""
    limits = [limit for each in bound.facts if not each.strict and (limit := _limit(each))]
    return any(each.exact and agrees(each, limit) for each in value.facts for limit in limits)


def _limit(bound: Fact) -> Fact | None:
    """The value where a bound ends."""
    ends = [each for each in (bound.low, bound.high) if each is not None]
    return Fact(bound.kind, ends[0], ends[0], bound.name) if len(ends) == 1 else None
