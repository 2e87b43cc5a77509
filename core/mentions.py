"""Where a text says amounts, dates, times, codes and versions.

One scanner reads the words of a text from left to right and looks only some words ahead, so it takes linear time and
never raises. Values are exact fractions, hence a conversion of units is exact.

No library does this in sentences. pint took 0.7 s and dateparser 0.5 s to be imported and used once (a busy core), and
they guess: to pint "in" is an inch, to dateparser "sat" and "10" are dates.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from core import units
from core.text import PLAIN
from core.units import Unit, is_grouped, values_of

_MOST_DIGITS = 30  # of a number; longer ones are codes
_MOST_WORDS = 12  # of a number in words, or groups of digits
_SPELT = str.maketrans({**PLAIN, **dict.fromkeys("\xa0\u2007\u2009\u202f", " ")})  # one character for one
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*|[^\w\s]|_")
_CHUNK = re.compile(r"\w+(?:-\w+)*")
_ORDINAL_ENDS = ("st", "nd", "rd", "th")
_TIMES = re.compile(r"(?<=\d)[x\u00d7](?=\d)", re.IGNORECASE)
_MODEL = re.compile(r"(\d{3,30})([a-z]{1,3})$")
_DAY_MONTH_YEAR = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})$")


class Fact(NamedTuple):
    """An amount, a date, a code or an attribute.

    Attributes:
        kind: the first unit of what is measured, "money", "number", "date", "time", "code", an attribute, ...
        low, high: the value, equal where it is exact; None: not bounded, or no number. Of a date year, month and day as
            one number, 0 for what is not said; the two differ where 3/5 may be either.
        name: a code, a value of an attribute, a currency.
        strict: whether the bounds themselves are out.
    """

    kind: str
    low: Fraction | None = None
    high: Fraction | None = None
    name: str = ""
    strict: bool = False

    @property
    def exact(self) -> bool:
        """Whether it is one value, not a range or a bound."""
        return self.kind == "date" or self.low == self.high

    @property
    def loose(self) -> bool:
        """Whether it may agree with a fact that does not equal it."""
        return self.low != self.high or self.kind in ("month", "date")


class Mention(NamedTuple):
    """A fact, and the characters that say it."""

    fact: Fact
    start: int
    end: int


def plain_spelling(text: str) -> str:
    """The text with plain quotes, dashes and spaces, one character for one."""
    return text.translate(_SPELT)


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


_FIRST_OF_BOUNDS = frozenset(words[0] for words in units.BOUNDS_BEFORE) | {"between"}
_FIRST = frozenset(("a", "an", "half", "noon", "midnight", "-")).union(  # words that begin facts without a digit
    *(_FIRST_OF_BOUNDS, units.DOTTED, units.SMALL, units.LARGE, units.PARTS, units.ORDINALS),
    *(units.MONTHS, units.SHORT_MONTHS, units.MONEY),
)
_Found = tuple[list[Fact], int] | None  # and the position of the token after them


class _Scanner:
    """Reads facts at a token; tokens are numbers, words and marks."""

    def __init__(self, text: str) -> None:
        matches = list(_TOKEN.finditer(text))
        self.written = [match[0] for match in matches]
        self.words = [word.lower() for word in self.written]
        self.starts, self.ends = [match.start() for match in matches], [match.end() for match in matches]
        self._chunks = {match.start(): match for match in _CHUNK.finditer(text)}
        self._quotes: list[bool] = []  # whether each token stands within quotes
        within = False
        for word in self.words:
            self._quotes.append(within)
            within ^= word == '"'

    def read(self, i: int) -> _Found:
        """The facts that begin at a token, and the position of the token after them."""
        if self._word(i) in ("no", "nos", "nr") and self._word(i + 1) == ".":  # no. 2231
            if (found := self._number(i + 2)) and not self._glued(found[1]):
                return [_exact("number", value) for value in found[0]], found[1]
            return self._code(i + 2)
        if self.words[i] not in _FIRST and not self.words[i][0].isdecimal():
            return self._code(i)
        return self._bounded(i) or self._date(i) or self._ordinal(i) or self._quantity(i) or self._code(i)

    def _word(self, i: int) -> str:
        return self.words[i] if 0 <= i < len(self.words) else ""

    def _glued(self, i: int) -> bool:
        """Whether nothing stands between a token and the one before it."""
        return 0 < i < len(self.words) and self.starts[i] == self.ends[i - 1]

    def _bounded(self, i: int) -> _Found:
        if self._word(i) not in _FIRST_OF_BOUNDS:
            return None
        for length in (3, 2, 1):
            bound = units.BOUNDS_BEFORE.get(tuple(self.words[i : i + length]))
            if bound is None or i + length > len(self.words):
                continue
            start = i + length + (self._word(i + length) == "the")
            if found := self._quantity(start):
                return [_bound(fact, *bound) for fact in found[0]], found[1]
        if self._word(i) == "between":
            return self._quantity(i + 1, between=True)
        return None

    def _quantity(self, i: int, between: bool = False) -> _Found:
        found = self._date(i) or self._clock(i) or self._version(i) or self._amount(i, between)
        if found is None:
            return None
        for length in (3, 2, 1):
            bound = units.BOUNDS_AFTER.get(after := tuple(self.words[found[1] : found[1] + length]))
            if bound is not None and len(after) == length:
                return [_bound(fact, *bound) for fact in found[0]], found[1] + length
        return found

    def _amount(self, i: int, between: bool) -> _Found:
        """3 kg, EUR 3, 5 to 7 days, a week, 30-day, 4711."""
        money = units.MONEY.get(self._word(i), "")
        first = self._number(i + 1 if money else i)
        if first is None:
            return None if money else self._one(i)
        values, end = first
        joined = self._word(end)
        if len(values) == 1 and joined in ("-", "to", "or", "and"):
            second = self._number(end + 1 + (bool(money) and self._word(end + 1) in units.MONEY))
            if second and len(second[0]) == 1 and (between or joined != "and"):
                unit, after = self._unit(second[1], money)
                plain = unit.kind == "number"
                if values[0] < second[0][0] and not (plain and joined == "or") and self._ends(after, unit):
                    low, high = (value * unit.factor for value in (values[0], second[0][0]))
                    return [Fact(unit.kind, low, high, unit.name)], after
                if joined == "or" and not plain:
                    return [_exact(unit.kind, v * unit.factor, unit.name) for v in (*values, *second[0])], after
        unit, after = self._unit(end, money)
        if self._word(end) == '"' and self._glued(end) and not self._quotes[end]:
            unit, after = units.UNITS["inch"], end + 1
        if not self._ends(after, unit):
            return None
        if unit.kind == "number" and self._word(after).upper() in ("XXL", "XL", "XS") and not self._glued(after):
            name = self.words[i] + self.words[after]
            return ([_exact("model", values[0], name)], after + 1) if _MODEL.match(name) else None
        if unit.kind == "degree":
            fahrenheit = unit.name == "f"
            values = [(value - 32) * Fraction(5, 9) if fahrenheit else value for value in values]
            return [_exact("degree", value) for value in values], after
        return [_exact(unit.kind, value * unit.factor, unit.name) for value in values], after

    def _ends(self, i: int, unit: Unit) -> bool:
        """Whether a number with its unit ends before a token: "603XL" is no number."""
        if not self._glued(i) or not self._word(i)[:1].isalnum():
            return True
        return unit.kind == "number" and self._word(i) in units.COUNTS

    def _one(self, i: int) -> _Found:
        """A week, half an hour."""
        half = self._word(i) == "half"
        if self._word(i + half) not in ("a", "an") or self._word(i + half + 1) not in units.SPANS:
            return None
        unit = units.UNITS[self._word(i + half + 1)]
        value = unit.factor / 2 if half else unit.factor
        return [_exact(unit.kind, value)], i + half + 2

    def _unit(self, i: int, money: str) -> tuple[Unit, int]:
        """The unit after a number, and the token after it."""
        if money:
            return Unit("money", name=money), i + (units.MONEY.get(self._word(i)) == money)
        start = i
        if self._word(i) == "-" and self._glued(i) and self._glued(i + 1):
            i += 1
        if self._word(i) in units.ADJECTIVES and not self._glued(i):
            i += 1
        word = self._word(i)
        if (word, self._word(i + 1)) == ("per", "cent"):
            return units.UNITS["%"], i + 2
        if word in ("\u00b0", "degree", "degrees") and self._word(i + 1) in ("c", "f", "celsius", "fahrenheit"):
            return Unit("degree", name=self._word(i + 1)[0]), i + 2
        unit = units.UNITS.get(word)
        if unit is None or (
            len(word) == 1 and word.isascii() and word.isalpha() and self.written[i] not in units.LETTERS
        ):
            return Unit("number"), start
        below = units.UNITS.get(self._word(i + 2)) if self._word(i + 1) == "/" and self._glued(i + 2) else None
        if below is not None and unit.kind != "money":
            return Unit(f"{unit.kind}/{below.kind}", unit.factor / below.factor), i + 3
        return unit, i + 1

    def _number(self, i: int) -> tuple[list[Fraction], int] | None:
        """The values of digits or number words, several of "3.10,3.11", and the token after them."""
        word = self._word(i)
        if word == "-" and self._glued(i + 1) and not self._glued(i) and self._word(i + 1)[:1].isdigit():
            found = self._number(i + 1)
            return found and ([-value for value in found[0]], found[1])
        if not word[:1].isdecimal():
            return self._number_words(i)
        if len(word) <= 3 and word.isdecimal() and not word.startswith("0"):
            end = i + 1
            while end - i < _MOST_WORDS and self._is_group(end):
                end += 1
            if end > i + 1:
                return values_of("".join(self.words[i:end])), end
        if any(len(digits) > _MOST_DIGITS for digits in re.split("[.,]", word)):
            return None
        end = i + 1
        values = values_of(word)
        while len(values) == 1 and (factor := units.LARGE.get(self._word(end))) and end - i < _MOST_WORDS:
            values, end = [values[0] * factor], end + 1
        if self._word(end) == "k" and self._glued(end):
            values, end = [*values[:-1], values[-1] * 1000], end + 1
        if self._glued(end) and (part := units.PARTS.get(self._word(end))):
            values, end = [values[-1] + part], end + 1
        return values, end

    def _is_group(self, i: int) -> bool:
        """Whether three digits stand after a space: the 000 of 1 000."""
        word = self._word(i)
        return word[:3].isdecimal() and not word[3:4].isdecimal() and len(word) >= 3 and self._apart(i)

    def _apart(self, i: int) -> bool:
        return self.starts[i] == self.ends[i - 1] + 1 and not self._glued(i)

    def _number_words(self, i: int) -> tuple[list[Fraction], int] | None:
        start, total, current, room = i, 0, -1, 1 << 62  # room: what may follow is smaller
        if self._word(i) in units.PARTS:
            return [units.PARTS[self._word(i)]], i + 1
        if self._word(i) == "a" and self._word(i + 1) in units.LARGE:
            current, i = 1, i + 1
        while i - start < _MOST_WORDS:
            skip = self._word(i) in ("-", "and") and current >= 0
            small, large = units.SMALL.get(self._word(i + skip)), units.LARGE.get(self._word(i))
            if skip and self._word(i) == "and" and room not in (100, 1000):
                break
            if small is not None and small < room and (current < 0 or small):
                current, room, i = max(current, 0) + small, (10 if small >= 20 else 0), i + skip + 1
            elif large is not None and (current > 0 or start == i):
                current = max(current, 1) * large
                room = 100 if large == 100 else 0
                if large >= 1000:
                    total, current, room = total + current, 0, 1000
                i += 1
            else:
                break
        alone = i - start == 1 and self._word(start) == "one"
        if (
            i == start
            or current < 0
            or (alone and self._word(i) not in units.UNITS and self._word(i) not in units.ADJECTIVES)
        ):
            return None
        return [Fraction(total + current)], i

    def _version(self, i: int) -> _Found:
        """Version 3.10, sections 2.1,2.2 and any 1.2.3."""
        named = self._word(i) in units.DOTTED
        word = self._word(i + named)
        if not word[:1].isdecimal() or "." not in word or not (named or word.count(".") > 1):
            return None
        if (not named and "," in word) or (not named and is_grouped(word)):
            return None
        return [Fact("version", name=each) for each in word.split(",")], i + named + 1

    def _clock(self, i: int) -> _Found:
        hour, minute, end = self._small(i, 24), 0, i + 1
        if self._word(i) in ("noon", "midnight"):
            return [_exact("time", Fraction(720 * (self._word(i) == "noon")))], i + 1
        if hour is None:
            return None
        colon = self._word(end) == ":" and self._glued(end) and self._glued(end + 1)
        if colon and len(self._word(end + 1)) == 2 and (given := self._small(end + 1, 59)) is not None:
            minute, end = given, end + 2
        half = self._word(end)
        if half in ("am", "pm"):
            end += 1
        elif half in ("a", "p") and self.words[end + 1 : end + 3] == [".", "m"] and self._glued(end + 2):
            end += 3 + (self._word(end + 3) == "." and self._glued(end + 3))
        elif not colon or end == i + 1:
            return None
        else:
            half = ""
        hour = hour % 12 + 12 * (half[0] == "p") if half else hour
        return [_exact("time", Fraction(hour * 60 + minute))], end

    def _small(self, i: int, most: int) -> int | None:
        word = self._word(i)
        return int(word) if word.isdecimal() and len(word) <= 2 and int(word) <= most else None

    def _date(self, i: int) -> _Found:
        """3 May 1921, May 3rd, 1921-05-03, 3.5.1921, 3/5/1921, May 1921, in May."""
        if match := _DAY_MONTH_YEAR.match(self._word(i)):
            return _dated([(int(match[3]), int(match[2]), int(match[1]))], i + 1)
        if self._word(i + 1) in ("-", "/") and self._word(i + 3) == self._word(i + 1) and self._glued(i + 4):
            parts = [self._word(place) for place in (i, i + 2, i + 4)]
            if all(part.isdecimal() and len(part) in (1, 2, 4) for part in parts):
                one, two, three = map(int, parts)
                if len(parts[0]) == 4:
                    return _dated([(one, two, three)], i + 5)
                return _dated([(three, two, one), (three, one, two)], i + 5)
        day, end = self._day(i)
        if day:
            end += self._word(end) in ("of", "-")
            if month := self._month(end, beside=True):
                year, end = self._year(end + 1)
                return _dated([(year, month, day)], end)
        if not (month := self._month(i, beside=False)):
            return None
        day, end = self._day(i + 1)
        if day and self._unit(end, "")[0].kind == "number" and self._word(end) not in (":", "times"):
            year, end = self._year(end)
            return _dated([(year, month, day)], end)
        year, end = self._year(i + 1)
        return _dated([(year, month, 0)], end)

    def _day(self, i: int) -> tuple[int, int]:
        day = self._small(i, 31)
        return (day, i + 1 + (self._glued(i + 1) and self._word(i + 1) in _ORDINAL_ENDS)) if day else (0, i)

    def _month(self, i: int, beside: bool) -> int:
        """The month of a token; `beside`: a day stands before it, so that "may" is one."""
        word = self._word(i)
        beside = beside or self._word(i + 1)[:1].isdecimal()
        if word not in ("may", "march") or beside:
            return units.MONTHS.get(word, 0) or (units.SHORT_MONTHS.get(word, 0) if beside else 0)
        before = self.written[i - 1] if i else ""
        return units.MONTHS[word] if self.written[i][0].isupper() and before[-1:].islower() else 0

    def _year(self, i: int) -> tuple[int, int]:
        start, i = i, i + (self._word(i) in (",", "-", "of"))
        word = self._word(i)
        if len(word) == 4 and word.isdecimal() and "1" <= word[0] <= "2":
            return int(word), i + 1
        return 0, start

    def _ordinal(self, i: int) -> _Found:
        word = self._word(i)
        if word in units.ORDINALS:
            return [_exact("ordinal", Fraction(units.ORDINALS[word]))], i + 1
        numbered = word.isdecimal() and len(word) < _MOST_DIGITS and self._glued(i + 1)
        if numbered and self._word(i + 1) in _ORDINAL_ENDS:
            return [_exact("ordinal", Fraction(int(word)))], i + 2
        return None

    def _code(self, i: int) -> _Found:
        """KB-2041, M6, 603XL, and numbers too long for one."""
        chunk = self._chunks.get(self.starts[i]) if i < len(self.starts) else None
        if chunk is None or not any(map(str.isdecimal, chunk[0])):
            return None
        written = chunk[0]
        long = written.isdecimal()
        if not long and not any(map(str.isalpha, written)):
            return None
        if (times := _TIMES.search(written)) and not written[: times.start()].isdecimal():
            written = written[: times.start()]
        end, stop = i + 1, self.starts[i] + len(written)
        while end < len(self.words) and self.starts[end] < stop:
            end += 1
        name = re.sub("[-_]", "", written).casefold()
        if model := _MODEL.match(name):
            return [_exact("model", Fraction(int(model[1])), name)], end
        return [Fact("code", name=name)], end


def _dated(read: list[tuple[int, int, int]], end: int) -> _Found:
    """A date of one or two readings (year, month, day); those that cannot be are left out."""
    found = []
    for year, month, day in read:
        full = year + (2000 if year < 70 else 1900) if 0 < year < 100 else year
        if 1 <= month <= 12 and day <= 31:
            found.append(Fraction(full * 10000 + month * 100 + day))
    return ([Fact("date", found[0], found[-1])], end) if found else None


def _bound(fact: Fact, side: str, strict: bool) -> Fact:
    """The fact as a bound; of dates, versions and ranges as it is."""
    if not fact.exact or fact.kind in ("date", "version"):
        return fact
    low, high = (None, fact.high) if side == "high" else (fact.low, None)
    return Fact(fact.kind, low, high, fact.name, strict)


def _exact(kind: str, value: Fraction, name: str = "") -> Fact:
    return Fact(kind, value, value, name)
