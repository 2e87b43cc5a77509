"""One spelling for what two texts say alike: a claim's amounts, dates and durations as a passage writes them.

A model that reads both need not know that 1921-05-03 is 3 May 1921, nor that 62 % is at least 60 %. Where no model
reads, a text's own amounts get one spelling: 2 hrs and two hours are 120 min, two weeks are 14 day.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby, islice
from typing import NamedTuple

from core.attributes import NEGATIONS
from core.facts import MAX_AMOUNTS, MAX_CHARS, MAX_INEXACT, agrees, includes, words_between
from core.mentions import Mention, mentions
from core.numerals import plain_spelling
from core.units import (
    ADJECTIVES,
    CASED,
    CELSIUS,
    FAHRENHEIT,
    LIMITS,
    MARKS,
    MONTHS,
    NAMES,
    PERIODS,
    SOME_BOUNDS,
    UNITS,
    Fact,
    Unit,
    word_set,
)

_MONTH_NAMES = {number: name for name, number in MONTHS.items()}
# Kinds of facts whose value is not all that they say: of a plain number 3.10 may be a section.
_AS_WRITTEN = frozenset(("number", "code", "model", "version", "ordinal"))
# With one of these a written amount says more than its value: two business days, one in four.
_SAYS_MORE = ADJECTIVES | frozenset(("points", "couple", "of", "dozen"))
_WORD = re.compile(r"[^\W\d_]+")
_MAYBE_THOUSANDS = re.compile(r"\d\.\d{3}(?!\d)")  # 1.500 is 1,500 to some
# Beside a number, with which it is one then, as in 1/2 kg and -5 kg.
_GOES_ON = re.compile(r"[^\W_]|[/:*'-][^\W_]")
_WENT_ON = re.compile(r"[^\W_]$|[^\W_][/:*'-]$|(?:^|\s)-$")
_HALF_DAY = re.compile(r"(?<![^\W\d_])[ap]\.?m|noon|midnight", re.IGNORECASE)
_NO_WIDER = SOME_BOUNDS.keys() | LIMITS | {"max", "min", "up", "within"}  # these give a limit or a right
_FAHRENHEIT = re.compile("\u2109|f(?:ahrenheit)?$", re.IGNORECASE)
_A_UNIT = re.compile(r"\s*an?\s+\S+", re.IGNORECASE)
_ONE_BEFORE = re.compile(r"\b(?:by|in|after|for|takes?|took|lasts?|lasted|than)\s+$", re.IGNORECASE)
_ONE_AFTER = re.compile(r"\s+(?:ago|later|earlier|longer|more)\b", re.IGNORECASE)
_BEHIND = 40  # characters behind an amount that tell whether it is one: half of it
_MAX_PLACES = 13  # of decimals
_MAX_WORDS = 6  # of a bound: a minimum stay of two nights
_MORNING = range(60, 780)  # minutes: 1:00 to 12:59 may be of either half of the day
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
    """The text with each amount that has a unit, each date and time of day, if it is one exact value, written one way.

    So is the value of a bound: within two weeks is within 14 day. Of a text with many the first `MAX_AMOUNTS`.
    """
    parts, after = [], 0
    plain = plain_spelling(text[:MAX_CHARS])
    found = groupby(islice(mentions(plain), MAX_AMOUNTS), key=lambda each: (each.start, each.end))
    for (start, end), some in found:
        facts = [each.fact for each in some]
        if {each.kind for each in facts} == {"money", "g"}:  # 20 pounds are sooner paid than weighed
            facts = facts[:1]
        if (limit := _limit(facts[0])) and all(_limit(each) == limit for each in facts):  # after 30 days
            facts = facts[:1]
        bounded = _bounded(facts[0], plain[start:end]) if len(facts) == 1 else None
        if bounded is not None:
            start, end, facts = start + bounded.start, start + bounded.end, [bounded.fact]
        alone = not (_WENT_ON.search(plain, max(0, start - 2), start) or _GOES_ON.match(plain, end))
        # A week is often each week.
        each = bounded is None and _A_UNIT.fullmatch(plain, start, end) and not _is_one(plain, start, end)
        spelling = _spelling(facts[0], plain[start:end]) if len(facts) == 1 and alone and not each else None
        if spelling is not None and [each.fact for each in mentions(spelling)] == facts:
            parts += [text[after:start], f" {spelling} "]
            after = end
    return "".join((*parts, text[after:]))


def _is_one(text: str, start: int, end: int) -> bool:
    """Whether a unit with an article is one of it: by a week, a week ago."""
    return (
        _ONE_AFTER.match(text, end) is not None or _ONE_BEFORE.search(text, max(0, start - _BEFORE), start) is not None
    )


def _bounded(fact: Fact, written: str) -> Mention | None:
    """Of a bound its value: two weeks, of within two weeks."""
    value = _limit(fact)
    if value is None:
        return None
    words = list(islice(re.finditer(r"\S+", written), _MAX_WORDS))
    for start, end in [(each.start(), len(written)) for each in words[1:]] + [(0, each.end()) for each in words[:-1]]:
        found = list(mentions(written[start:end]))
        if [each.fact for each in found] == [value]:
            return Mention(value, start + found[0].start, start + found[0].end)
    return None


def _spelling(fact: Fact, written: str) -> str | None:
    """How a fact is written if it is all that its words say; None: they say more, or may mean something else."""
    if fact.low is None or fact.low != fact.high or fact.kind in _AS_WRITTEN or _MAYBE_THOUSANDS.search(written):
        return None
    words = frozenset(_WORD.findall(written.lower()))
    if fact.kind == "date":
        month, day = divmod(int(fact.low) % 10000, 100)
        said = (str(day or ""), _MONTH_NAMES.get(month, "").title(), str(int(fact.low) // 10000 or ""))
        return " ".join(filter(None, said)) if day else None
    if fact.kind == "time":
        half = " am" if fact.low < 720 and _HALF_DAY.search(written) else ""
        hour, minute = divmod(int(fact.low), 60)
        return None if later_readings(fact, written) else f"{hour}:{minute:02d}{half}"
    if not words.isdisjoint(_SAYS_MORE) or (fact.kind == "%" and not _is_percentage(written, words)):
        return None
    value, name = (fact.low, fact.name or "%")
    if fact.kind not in ("money", "%"):
        value, name = _in_its_unit(fact.kind, fact.low, written)
    number = _decimal(value) if name else None
    return number and f"{number} {name}"


def later_readings(fact: Fact, written: str) -> list[Fact]:
    """A time of day that may be twelve hours later, read so: 5:00, but neither 5 am nor 17:00."""
    if fact.kind != "time" or _HALF_DAY.search(written) or not {fact.low, fact.high} <= {None, *_MORNING}:
        return []
    return [fact._replace(low=fact.low and fact.low + 720, high=fact.high and fact.high + 720)]


def _in_its_unit(kind: str, value: Fraction, written: str) -> tuple[Fraction, str]:
    """A value in the first unit of its kind, or the one that is written if its digits end in that alone; or no name.

    Durations are of days or of minutes: who opens for 24 hours does not open for one day.
    """
    if kind == "degree":
        unit = FAHRENHEIT if _FAHRENHEIT.search(written) else CELSIUS
        return value / unit.factor + unit.zero, "\u00b0f" if unit is FAHRENHEIT else "\u00b0c"
    said = [CASED.get(word) or UNITS.get(word.lower()) or PERIODS.get(word.lower()) for word in _WORD.findall(written)]
    first = [UNITS.get(part, Unit(part)) for part in kind.split("/")]  # of km/h two
    kinds = [unit.kind for unit in first]
    found = [unit for unit in said if unit is not None and unit.kind in kinds]
    if kinds[0] == "s" and found:
        first[0] = UNITS["day" if found[0].factor >= UNITS["day"].factor else "min"]
    if len(kinds) > 1 and found and found[-1] in PERIODS.values():
        first[1] = found[-1]  # 60 GB a year are not for each month 5
    for units in (first, found):
        if [unit.kind for unit in units] == kinds and NAMES.keys() >= set(units):
            own = value / units[0].factor * (units[-1].factor if len(units) > 1 else 1)
            if _decimal(own) is not None:
                return own, "/".join(NAMES[unit] for unit in units)
    return value, ""


def _is_percentage(written: str, words: frozenset[str]) -> bool:
    return "%" in written or not words.isdisjoint(("percent", "cent", "pct"))


def _decimal(value: Fraction) -> str | None:
    """Its digits; None where they do not end soon."""
    for places in range(_MAX_PLACES):
        if 10**places % value.denominator == 0:
            digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
            whole = len(digits) - places
            return "-" * (value < 0) + digits[:whole] + "." * (places > 0) + digits[whole:]
    return None


def whole_amounts(claim: str) -> list[Amount]:
    """The amounts of a claim that say the same without what stands before them.

    Not "more than four", which nobody may take: a negation before it is a part of the bound.
    """
    found = ((each, amounts_in(claim[each.start : each.end + _BEHIND])) for each in amounts_in(claim))
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
    every = ((x, y) for x in a.facts for y in b.facts)
    return any(x == y or (_is_value(x) == _is_value(y) and x.kind != "date" and agrees(x, y)) for x, y in every)


def _is_value(fact: Fact) -> bool:
    """Whether a fact is one value, or one that people round, as a third."""
    if fact.exact or fact.kind != "%" or fact.low is None or fact.high is None:
        return fact.exact
    return fact.high - fact.low < 1


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
