"""Where a text says amounts, dates, times, codes and versions.

One scanner reads the words of a text from left to right and looks only some words ahead, so it takes linear time and
never raises. Values are exact fractions, hence a conversion of units is exact.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from core import currencies, units
from core.attributes import NEGATIONS
from core.codes import MODEL, code, codes_in, is_grouped, ordinal
from core.dates import Found, date, hours, version
from core.measures import Measures
from core.numerals import plain_spelling
from core.units import Fact, Unit, bounded, share

_THREE_PLACES = re.compile(r"[1-9]\d{0,2}\.\d{3}$")
_TIMES_OF = frozenset(("x", "\u00d7", "*", "by"))
MAX_IN_WHOLE = 10  # nine in ten, but not 5 in 2019
_YEARS = range(1100, 2200)  # number one in 1984
_MAX_ROUNDED = 20  # a whole: up to it no two parts are rounded alike
MAX_BETWEEN = 8  # words between a negation and a comparison
_TURNED = {"low": "high", "high": "low"}


class Mention(NamedTuple):
    """A fact, and the characters that say it."""

    fact: Fact
    start: int
    end: int


def mentions(text: str) -> Iterator[Mention]:
    """The facts of a text in their order, but its attributes and negations; those of one place may be several."""
    scanner = _Scanner(plain_spelling(text))
    i = 0
    while i < len(scanner.words):
        found = scanner.read(i)
        if found is None:
            i += 1
            continue
        for fact in found[0]:
            yield Mention(fact, scanner.starts[i], scanner.ends[found[1] - 1])
        i = found[1]


_FIRST_OF_BOUNDS = frozenset(words[0] for words in units.BOUNDS_BEFORE) | units.SOME_BOUNDS.keys()
_FIRST_OF_BOUNDS |= {"between", "not", "no"}
_FIRST = frozenset(("a", "an", "half", "quarter", "noon", "midnight", "-", "minus")).union(
    *(_FIRST_OF_BOUNDS, units.TIMES, units.DOTTED, units.SMALL, units.LARGE, units.PARTS, units.ORDINALS),
    *(units.MONTHS, units.SHORT_MONTHS, currencies.MONEY, currencies.DOLLARS),
)  # words that begin facts without a digit


_SIGNS = frozenset("-$").union(mark for mark in currencies.MONEY if not mark.isalpha())


class _Scanner(Measures):
    """Reads facts at a token."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._codes = codes_in(text)

    def read(self, i: int) -> Found:
        """The facts that begin at a token, and the position of the token after them."""
        if self.word(i) in ("no", "nos", "nr") and self.word(i + 1) == ".":  # no. 2231
            return self._numbered(i + 2) or code(self, self._codes, i + 2)
        if self.word(i) in ("number", "#") and self.begins_number(i + 1):
            return self._numbered(i + 1)
        if self.words[i] not in _FIRST and not self.words[i][0].isdecimal():
            return code(self, self._codes, i)
        if self.words[i] in _SIGNS and not any(map(self.begins_number, range(i + 1, i + 4))):
            return None
        return self._bounded(i) or date(self, i) or self._quantity(i) or ordinal(self, i) or code(self, self._codes, i)

    def _numbered(self, i: int) -> Found:
        """A number that names something, whatever follows it."""
        found = None if self._is_grouped(i) else self.number(i)
        if found is None or (self.glued(found[1]) and self.word(found[1]) not in units.MARKS):
            return None
        return [Unit("number").fact(value) for value in found[0]], found[1]

    def _is_grouped(self, i: int) -> bool:
        """Whether digits in groups, which are one code, begin at a token."""
        return i < len(self.starts) and is_grouped(self._codes.get(self.starts[i], ""))

    def _bounded(self, i: int) -> Found:
        """At least 3, not within 30 days, a minimum stay of 2 nights, between 5 and 7, from 6 years."""
        arrow = self.word(i) in ("<", ">") and self.word(i - 1) in ("-", "=", "<", ">")
        if self.word(i) not in _FIRST_OF_BOUNDS or arrow:
            return None
        turned = self.word(i) in ("not", "no")
        start = i + turned + (turned and self.word(i + 1) == "be")
        for length in (3, 2, 1):
            bound = units.BOUNDS_BEFORE.get(tuple(self.words[start : start + length]))
            if bound is None or (self.word(i) == "no" and self.word(start + length - 1) != "than"):
                continue
            end, last = start + length, self.word(start + length - 1)
            if self.word(start) in units.LIMITS:
                links = (end + k for k in (0, 1, 2) if self.word(end + k) in ("of", "is"))
                end = 1 + next(links, end - 1)
            farther = last in ("than", "exceed") and not turned and self._denied(i)
            side, strict = (_TURNED[bound[0]], not bound[1]) if turned or farther else bound
            found = self._quantity(self._passed_over(end))
            if found and i == 0 and self.word(i) == ">" and length == 1 and found[0][0].kind in units.UNITLESS:
                return None  # what an e-mail quotes
            if found:
                return [bounded(fact, side, strict) for fact in (*found[0], *self._age(found))], found[1]
        if self.word(i) in units.SOME_BOUNDS:
            side, kinds = units.SOME_BOUNDS[self.word(i)]
            found = self._quantity(self._passed_over(i + 1))
            if found and all(fact.kind in kinds and _may_follow_from(fact) for fact in found[0]):
                # From 5 % to 10 % is that range. After 30 days the 30th may be out.
                return [
                    bounded(fact, side, strict) if fact.exact else fact
                    for strict in ((False, True) if self.word(i) == "after" else (False,))
                    for fact in found[0]
                ], found[1]
        return self._quantity(i + 1, between=True) if self.word(i) == "between" else None

    def _passed_over(self, i: int) -> int:
        """The token of an amount behind its bound: below the age of 6."""
        tied = self.word(i) == "-" and self.glued(i) and self.glued(i + 1)  # under-18s
        return i + next((len(words) for words in units.PASSED_OVER if self.are(i, *words)), int(tied))

    def _age(self, found: tuple[list[Fact], int]) -> list[Fact]:
        """The years that seconds may be behind a bound: over 65s."""
        (fact, *_), end = found
        years = fact.low if fact.kind == "s" and self.word(end - 1) == "s" and self.glued(end - 1) else None
        return [units.UNITS["year"].fact(years)] if years and years <= units.MAX_FROM else []

    def _denied(self, i: int) -> bool:
        """Whether a negation stands some words before a comparison: nobody may take more than four."""
        before = self.words[max(0, i - MAX_BETWEEN) : i]
        clause = next((before[k + 1 :] for k in range(len(before) - 1, -1, -1) if before[k] in units.MARKS), before)
        return not NEGATIONS.isdisjoint(clause)

    def _quantity(self, i: int, between: bool = False) -> Found:
        found = date(self, i)
        if found is None and self._is_grouped(i):
            return None
        found = found or hours(self, i) or version(self, i)
        found = found or self._rated(self._part(i) or self._amount(i, between))
        if found is None:
            return None
        if self._is_plus(found[1]):
            return [bounded(fact, "low", False) for fact in found[0]], found[1] + 1
        for length in (3, 2, 1):
            bound = units.BOUNDS_AFTER.get(after := tuple(self.words[found[1] : found[1] + length]))
            if bound is not None and len(after) == length:
                return [bounded(fact, *bound) for fact in found[0]], found[1] + length
        return found

    def _is_plus(self, i: int) -> bool:
        """Whether the sign behind a number makes it a bound: 18+, but not 5+1."""
        return self.word(i) == "+" and self.glued(i) and not (self.glued(i + 1) and self.word(i + 1)[:1].isalnum())

    def _amount(self, i: int, between: bool) -> Found:
        """3 kg, EUR 3, 5 to 7 days, a week, 30-day, 4711."""
        start, money = self._currency(i + self.is_minus(i))
        if self.is_minus(i) and not money:
            start = i  # the number has it
        first = self.number(start)
        if first is None:
            return None if money else self._one(i)
        if money and self.is_minus(i):
            first = [-value for value in first[0]], first[1]
        if found := self._range(start, *first, money, between):
            return found
        values, end = first
        if self._is_plus(end):  # 10+ years
            unit, after = self._unit(end + 1, money)
            meant = units.EITHER.get(unit.kind, (unit,))
            return [bounded(each.fact(values[-1]), "low", False) for each in meant], after
        unit, after = self._unit(end, money)
        if self.word(end) == '"' and self.glued(end) and not self.quoted[end]:
            unit, after = units.UNITS["inch"], end + 1
        if self.word(end) == "p" and self.glued(end) and self.word(end + 1) != "." and values[-1] < 100:
            unit, after = Unit("money", Fraction(1, 100), "\u00a3"), end + 1
        in_feet = self.word(end) == "'" and self.word(end + 2) == '"' and all(map(self.glued, range(end, end + 3)))
        if in_feet and (inches := self.small(end + 1, 11)) is not None:  # 5'6"
            return [units.UNITS["inch"].fact(12 * values[-1] + inches)], end + 3
        minutes = self.small(end + 1, 59) if self.word(end) == ":" and self.glued(end) and self.glued(end + 1) else None
        if minutes is not None and self._unit(end + 2, "")[0] == units.UNITS["hour"]:  # 1:45 h
            return [units.UNITS["min"].fact(60 * values[-1] + minutes)], self._unit(end + 2, "")[1]
        parts = 0 if money else units.IN_PARTS.get(unit, 0)
        below = self.small(after, parts - 1) if self.glued(after) or self.word(after + 1) in units.AFTER_PARTS else None
        if below is not None and len(self.word(after)) == 2:  # 1h30, 1 m 80, 5 pounds 50
            unit = units.UNITS["\u00a3"] if unit.kind == "pound" else unit
            minutes = unit == units.UNITS["hour"] and self.word(after + 1) == "m" and self.glued(after + 1)
            return [unit.fact(values[-1] + Fraction(below, parts))], after + 1 + minutes
        if not self._ends(after, unit):
            return None
        is_size = self.word(after).upper() in ("XXL", "XL", "XS") and not self.glued(after)
        if unit.kind == "number" and after == i + 1 and self.words[i].isdecimal() and is_size:
            name = self.words[i] + self.words[after]  # 603 XL as if nothing stood between
            said = Unit("model").fact(values[0], name) if MODEL.match(name) else Fact("code", name=name)
            return [said], after + 1
        if unit.kind not in ("number", "money") and end == start + 1 and _THREE_PLACES.match(self.word(start)):
            values = [values[0] / 1000]  # 1.000 kg
        if unit.kind not in ("number", "money") and end == start + 2 and self._may_count(start):
            values = [*values, Fraction(int(self.word(start + 1)))]  # 2 500 g may be two of 500 g
        if self._may_be_two(start, unit, after):
            low, high = (unit.value(Fraction(self.word(place))) for place in (start, start + 2))
            return [unit.fact(values[0]), Fact(unit.kind, low, high)], after
        if unit.kind == "number" and (side := self._side(start, end)):
            return [each.fact(value) for each in side for value in values], end
        meant = units.EITHER.get(unit.kind, (unit,))
        longer = self._longer(meant, values[0], after) if len(values) == 1 else None
        return longer or ([each.fact(value) for value in values for each in meant], after)

    def _side(self, start: int, i: int) -> tuple[Unit, ...]:
        """The unit that a number has from the last of a size: 60 x 40 x 40 cm; 2 x 4 m may be two of them."""
        for sides in (2, 3):
            found = self.number(i + 1) if self.word(i) in _TIMES_OF else None
            unit, after = self._unit(found[1], "") if found else (Unit("number"), i)
            if found is None or unit.kind != "number":
                own = (unit,) * (unit.kind == "m" and self._ends(after, unit))
                several = own and sides == 2 and self.word(start - 1) not in _TIMES_OF
                return (*own, Unit("number")) if several else own
            i = found[1]
        return ()

    def _may_be_two(self, i: int, unit: Unit, after: int) -> bool:
        """Whether a fraction with its unit, 2/3 days, may be either of two numbers: two or three days."""
        days = unit.kind == "month" or (unit.kind == "s" and unit.factor >= units.UNITS["day"].factor)
        return days and self.word(i + 1) == "/" and self.word(after - 1).endswith("s")

    def _may_count(self, i: int) -> bool:
        """Whether a digit may count what a number of three digits behind it measures."""
        word = self.word(i + 1)
        return len(self.word(i)) == 1 and len(word) == 3 and word.isdecimal() and word[0] != "0"

    def _range(self, start: int, values: list[Fraction], end: int, money: str, between: bool) -> Found:
        """5 to 7 days, 10 % to 20 %, 3 or 5 kg; "and" joins only `between` two."""
        own, middle = self._unit(end, money)
        per, middle = self._per(middle) or (None, middle)  # 5 km/h to 6 km/h
        joined = self.word(middle)
        if joined not in (*units.RANGES, "or", "and") or (joined == "and" and not between):
            return None
        second = self.number(self._currency(middle + 1)[0] if money else middle + 1)
        if second is None or len(second[0]) != 1 or len(values) != 1:
            return None
        if money and not self._currency(middle + 1)[1]:
            other, _ = self._unit(second[1], "")
            if other.kind not in ("number", "money") or date(self, middle + 1):  # $5 or 10 %, 50 euros - 60 min
                return None
        unit, after = self._unit(second[1], money)
        shared = 1
        if own.kind in ("number", "money") and self.multiplier(start, end) == 1:
            shared = self.multiplier(middle + 1, second[1])  # 5 to 10 million
            values = [values[0] * (shared if values[0] * shared < second[0][0] else 1)]
        own = unit if own.kind == "number" else own
        low, high = own.value(values[0]), unit.value(second[0][0])
        if (own.kind, own.name) != (unit.kind, unit.name) or not self._ends(after, unit):
            return None
        plain = unit.kind == "number"
        if (plain and joined in ("till", "until")) or (per and per != (self._per(after) or (None,))[0]):
            return None  # 5 until 30 June
        if joined == "or":
            either = [Fact(unit.kind, each, each, unit.name) for each in (low, high)]
            return None if plain and shared == 1 else (either, after)
        return ([Fact(unit.kind, low, high, unit.name)], after) if low < high else None

    def _longer(self, meant: Sequence[Unit], value: Fraction, after: int) -> Found:
        """An amount that a smaller unit goes on: 1 h 20 min, two years and six months, 5 dollars and 99 cents."""
        pointed = self.word(after) == "." and self.word(after - 1) in units.POINTED
        joined = self.word(after) if self.word(after) in (",", "and") or pointed else ""
        second = self.number(after + bool(joined)) if meant[0].kind in units.MIXED else None
        if second is None:
            return None
        inches = meant[0] == units.UNITS["ft"] and self.word(second[1]) == "in"
        inches = inches and (not pointed or self.word(second[1] + 1) in units.AFTER_PARTS)
        more, end = (units.UNITS["inch"], second[1] + 1) if inches else self._unit(second[1], "")
        if meant[0] == units.UNITS["hour"] and not joined and self.word(second[1]) == "m":  # 1h 30m
            more = units.UNITS["min"]
        for unit, less in product(meant, units.EITHER.get(more.kind, (more,))):
            part = second[0][0] * less.factor
            # 1 kg, 500 g are two, and 1 l and 500 ml; 5 feet and 6 inches are one.
            joins = unit.kind == "money" or unit.factor < 100 * less.factor
            one = not joined or unit.kind in ("s", "month") or ((joined == "and" or pointed) and joins)
            if one and (less.kind, less.name) == (unit.kind, unit.name) and 0 <= part < unit.factor > less.factor:
                total = unit.value(value) + (part if value >= 0 else -part)
                return [Fact(unit.kind, total, total, unit.name)], end
        return None

    def _one(self, i: int) -> Found:
        """A week, half an hour, an hour and a half, twice, once a year."""
        times = units.TIMES.get(self.word(i), 0)
        if times > 1 or (times and self.word(i + 1) in units.OFTEN):
            return [Unit("times").fact(Fraction(times))], i + 1
        half = self.word(i) == "half"
        if self.word(i + half) not in ("a", "an") or self.word(i + half + 1).removesuffix("'s") not in units.SPANS:
            return None
        unit, end = units.UNITS[self.word(i + half + 1)], i + half + 2
        if self.are(end, "and", "a", "half") and not half:
            return [unit.fact(Fraction(3, 2))], end + 3
        return [unit.fact(Fraction(1, 1 + half))], end

    def _part(self, i: int) -> Found:
        """Half of the seats, two thirds of it, one in three, as percentages; a quarter of an hour."""
        if ratio := self._ratio(i):
            return ratio
        start, count = i, Fraction(1)
        written = self.fraction(i)
        if self.word(i) in ("a", "one"):
            start += 1
        elif self.word(i) not in units.FRACTIONS and not written and (found := self.number(i)):
            start, count = found[1], found[0][0]
        part = units.FRACTIONS.get(self.word(start))
        if written and written[0] < 1:  # 3/4 of the seats
            start, part, count = written[1] - 1, Fraction(1), written[0]
        if part is None or (start == i and part < Fraction(1, 2)):
            return None
        end = start + 1 + (self.word(start + 1) == "of")
        if self.word(end) in ("a", "one") and self.word(end + 1) in units.LARGE and self.number(i):
            return None  # a quarter of a million
        if self.word(end) in ("a", "an") and self.word(end + 1) in units.SPANS:
            return [units.UNITS[self.word(end + 1)].fact(count * part)], end + 2
        if end == start + 1 and self.word(end) not in units.OWNED:
            return None
        return [share(count * part)], start + 1

    def _ratio(self, i: int) -> Found:
        """One in three, nine in ten, 3 out of 4."""
        first = ([Fraction(1)], i + 1) if self.word(i) == "one" else self.number(i)
        if first is None:
            return None
        (*_, part), end = first
        out = self.are(end, "out", "of")
        if not out and self.word(end) != "in":
            return None
        second = self.number(end + 1 + out)
        if second is None or self._unit(second[1], "")[0].kind != "number" or not self._ends(second[1], Unit("number")):
            return None
        (*_, whole), end = second
        if part.denominator != 1 or not 0 < part < whole or not (out or part == 1 or whole <= MAX_IN_WHOLE):
            return None
        if not out and whole in _YEARS and "," not in self.word(end - 1):
            return None
        return [share(part / whole) if whole <= _MAX_ROUNDED else Unit("%").fact(100 * part / whole)], end


def _may_follow_from(fact: Fact) -> bool:
    return fact.kind != "number" or (fact.high is not None and fact.high <= units.MAX_FROM)
