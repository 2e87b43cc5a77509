"""The words of a text one by one, and the numbers that they write.

Values are exact fractions. Every reader looks only some words ahead, so a text is read in linear time.
"""

import re
from fractions import Fraction
from math import gcd

from core import currencies, units
from core.text import PLAIN
from core.units import values_of

_MAX_WORDS = 32  # of a number in words, or groups of digits
_CIRCLED = {chr(0x2460 + i): str(i + 1) for i in range(9)}
_FULL_WIDTH = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
_SPELT = str.maketrans(
    {**PLAIN, **_CIRCLED, **_FULL_WIDTH, **dict.fromkeys("\xa0\u2007\u2009\u202f", " "), "\u2215": "/", "`": "'"}
    | {"\u03bc": "\xb5"}  # the Greek letter, and micro
)  # one character for one
# The number of something, where digits are left out or come later: your customer no. and your name. It denies nothing.
_NO = re.compile(r"\b[Nn][Oo]\.(?= ?(?:[a-z#\d]|[A-Z]{1,5}[ -]?\d))|(?<=[a-z] )no\.(?= \w)")
# Digits in groups that are one code: a telephone number, of the US too, an IBAN.
GROUPED = re.compile(
    r"(?<![\w.,+/:-])(?:(?=\+?(?:[ -]?\d){9})(?:\+[1-9]\d{0,2}|0\d{1,4})(?:[ -]\d{2,8}){1,6}|[+0]\d{8,29}"
    r"|(?:\+?1[ -]?)?(?:\([2-9]\d\d\) ?|[2-9]\d\d-)\d{3}[ -]\d{4}|\(0\d{1,4}\) ?\d{2,8}(?:[ -]\d{2,8}){0,5}"
    r"|[A-Z]{2}\d\d(?: [A-Z]{4})?(?: \d{4}){2,7}(?: \d{1,3})?)(?!\w|[.,:/]\d|-\w)",
    re.ASCII,
)
APOSTROPHES = re.compile(r"(?<=\d)'(?=\d{3}(?!\d))")  # between thousands: 1'000
_MARKS = "".join(units.PARTS)
_TOKEN = re.compile(
    rf"(?:(?<![^\s(=<>~$\u20ac\u00a3+-])\.)?\d+(?:[.,]\d+)*|[{_MARKS}]"
    rf"|[^\W\d_{_MARKS}]+(?:'[^\W\d_{_MARKS}]+)*|[^\w\s]|_"
)
_JOINED = frozenset((*units.RANGES, "or", "and"))  # 1/2 to 3/4 inch
_BEFORE_SIGN = frozenset("($\u20ac\u00a3\u00a5\u20b9")
_AFTER_MINUS = currencies.MONEY.keys() | units.SMALL.keys() | units.LARGE.keys()
_SHORT = frozenset(("bn", "tn", "mio", "mln"))  # no numbers by themselves
_AND_A = {"half": Fraction(1, 2), "quarter": Fraction(1, 4)}
_SOME = frozenset(("several", "few", "many", "couple", "some"))
_LETTERS = units.MILLIONS | {"k": 1000}
Number = tuple[list[Fraction], int] | None  # values, and the position of the token after them


def plain_spelling(text: str) -> str:
    """The text with plain quotes, dashes and spaces, a character for each; 1'000 is 1,000, a circled 2 is 2, no. nr."""
    return _NO.sub("nr.", APOSTROPHES.sub(",", text.translate(_SPELT)))


class Tokens:
    """Numbers, words and marks of a text.

    Attributes:
        written: as they stand there.
        words: in lower case; .5 is 0.5.
        starts, ends: their characters.
        quoted: whether they stand within quotes.
    """

    def __init__(self, text: str) -> None:
        matches = list(_TOKEN.finditer(text))
        self.written = [match[0] for match in matches]
        self.words = [f"0{word}" if word[0] == "." and len(word) > 1 else word.lower() for word in self.written]
        self.starts, self.ends = [match.start() for match in matches], [match.end() for match in matches]
        self.quoted: list[bool] = []
        within = False
        for word in self.words:
            self.quoted.append(within)
            within ^= word == '"'

    def word(self, i: int) -> str:
        """The token at a position, in lower case; empty beyond the text."""
        return self.words[i] if 0 <= i < len(self.words) else ""

    def are(self, i: int, *words: str) -> bool:
        """Whether these tokens stand at a position."""
        return tuple(self.words[i : i + len(words)]) == words

    def glued(self, i: int) -> bool:
        """Whether nothing stands between a token and the one before it."""
        return 0 < i < len(self.words) and self.starts[i] == self.ends[i - 1]

    def is_minus(self, i: int) -> bool:
        """Whether a token is the sign of what follows: -5, -$5, $-5, minus five, but not 3-5."""
        if self.word(i) == "minus" and not self.word(i - 1)[:1].isdecimal():
            return self.begins_number(i + 1) or self.word(i + 1) in _AFTER_MINUS
        after = self.glued(i) and self.word(i - 1) not in _BEFORE_SIGN
        return self.word(i) == "-" and self.glued(i + 1) and not after

    def small(self, i: int, maximum: int) -> int | None:
        """The number of at most two digits at a token, if it is no more than that."""
        word = self.word(i)
        return int(word) if word.isdecimal() and len(word) <= 2 and int(word) <= maximum else None

    def number(self, i: int) -> Number:
        """The values of digits or number words, several of "3.10,3.11", and the token after them."""
        if self.word(i) == "minus" and self.is_minus(i):
            positive = self.number(i + 1)
            return positive and ([-value for value in positive[0]], positive[1])
        in_digits = self.begins_number(i) or self.word(i) == "-"
        found = self._of_large(i) or (self._digits(i) if in_digits else self._number_words(i))
        whole = found or (([Fraction(1)], i + 1) if self.word(i) == "one" else None)
        if whole and self.are(whole[1], "and", "a") and (part := _AND_A.get(self.word(whole[1] + 2))):
            of = units.LARGE.get(self.word(whole[1] - 1), 1)  # a million and a half
            return self._times_large([*whole[0][:-1], whole[0][-1] + part * of], whole[1] + 3, i)
        return found

    def multiplier(self, i: int, end: int) -> int:
        """What the last words or letters of a number at a token multiply: the million of 10 million, the k of 10k."""
        factor = 1
        while end - 1 > i and (last := units.LARGE.get(self.word(end - 1)) or _LETTERS.get(self.word(end - 1))):
            factor, end = factor * last, end - 1
        return factor

    def _of_large(self, i: int) -> Number:
        """Half a million, a quarter of a million, 3/4 of a million."""
        if written := self.fraction(i):
            count, start = written[0], written[1] - 1
        else:
            counted = self.word(i) == "a" or self.word(i) in units.SMALL
            count, start = Fraction(units.SMALL.get(self.word(i), 1)), i + counted
            count *= units.FRACTIONS.get(self.word(start), 0)
        end = start + 1 + (self.word(start + 1) == "of")
        large = units.LARGE.get(self.word(end + 1)) if count and self.word(end) in ("a", "one") else None
        return self._times_large([count * large], end + 2, i) if large else None

    def begins_number(self, i: int) -> bool:
        """Whether a token has digits, or is a character for a fraction."""
        return self.word(i)[:1].isdecimal() or self.word(i) in units.PARTS

    def fraction(self, i: int) -> tuple[Fraction, int] | None:
        """What may be a part of something, 3/8 or a character for it, and the token after it; no 1/2/2024, no 24/7."""
        if self.word(i) in units.PARTS:
            return units.PARTS[self.word(i)], i + 1
        above, below = self.small(i, 99), self.small(i + 2, 99)
        if not above or below not in units.BELOW or self.word(i + 1) != "/" or gcd(above, below) > 1:
            return None
        if not (self.glued(i + 1) and self.glued(i + 2)) or (self.glued(i + 3) and self.word(i + 3) == "/"):
            return None
        before = self.word(i - 1)
        if before in units.NUMBERED or before in currencies.MONEY or (before == "/" and self.glued(i)):
            return None
        return Fraction(above, below), i + 3

    def _mixed(self, i: int) -> tuple[Fraction, int] | None:
        """The fraction behind a whole number, 1 1/2, 1-1/2, 1 and 1/2 or 2 3/4, and the token after it."""
        word, end = self.word(i), i + 1
        below = self.word(i - 1) == "/" and self.glued(i)
        if not word.isdecimal() or len(word) > 3 or below or self.word(i - 1) in units.NUMBERED:
            return None
        tied = self.word(end) == "and" or (self.word(end) == "-" and self.glued(end) and self.glued(end + 1))
        found = self.fraction(end + tied)
        if found is None or found[0] >= 1:
            return None
        if self.word(end) in units.PARTS:
            return found if self.glued(end) or self.starts[end] == self.ends[i] + 1 else None
        if self.glued(end + tied) and not tied:
            return None
        # What a number and a fraction count is known by its unit, or stands there as a word: 2 1/2 gallons.
        counts = not tied and self.word(found[1])[:1].isalpha() and not self.glued(found[1])
        counts = counts and self.word(found[1]) != "of"
        return found if counts or self._measured(found[1], found[0]) else None

    def _measured(self, i: int, value: Fraction, ahead: bool = True) -> bool:
        """Whether a unit follows at a token, or another number and its unit, as of 1/2 to 3/4 inch."""
        if ahead and self.word(i) in _JOINED and self.begins_number(i + 1):
            other = self.fraction(i + 1) or (Fraction(0), i + 2)
            return self._measured(other[1], value, ahead=False)
        i += self.word(i) == "-" and self.glued(i) and self.glued(i + 1)
        i += self.word(i) in units.ADJECTIVES and not self.glued(i)
        word = self.word(i)
        if word == '"':
            return self.glued(i) and not self.quoted[i]
        if len(word) == 1 and word.isalpha():
            return word in units.UNITS and self.written[i] in units.LETTERS
        unit = units.UNITS.get(word)
        if unit is not None and unit.kind in ("s", "month"):
            return value < 1 or unit.factor < units.UNITS["day"].factor  # 5/4 days are five or four
        known = unit is not None or word in units.EITHER or word in units.PORTIONS or word in units.LARGE
        return known or word in ("\u00b0", "degree", "degrees", *units.POWERS) or self.phrase(i) is not None

    def _digits(self, i: int) -> Number:
        word = self.word(i)
        if word == "-":
            if not self.is_minus(i) or not self.begins_number(i + 1):
                return None
            found = self._digits(i + 1)
            return found and ([-value for value in found[0]], found[1])
        part = self.fraction(i)
        if part and (word in units.PARTS or self._measured(part[1], part[0])):
            return self._times_large([part[0]], part[1], i)
        if part := self._mixed(i):
            return self._times_large([int(word) + part[0]], part[1], i)
        if not word[:1].isdecimal():
            return None
        if len(word) <= 3 and word.isdecimal() and not word.startswith("0"):
            end = i + 1
            while end - i < _MAX_WORDS and self._is_group(end):
                end += 1
            if end > i + 1 and (values := values_of("".join(self.words[i:end]))):
                return values, end
        values, end = values_of(word), i + 1
        if not values:
            return None
        if self.glued(end) and (mark := units.PARTS.get(self.word(end))):  # 1,000 and a half
            values, end = [values[-1] + mark], end + 1
        return self._times_large(values, end, i)

    def _times_large(self, values: list[Fraction], end: int, i: int) -> Number:
        """Digits with what multiplies them: 5 million, 5k."""
        while len(values) == 1 and (factor := units.LARGE.get(self.word(end))) and end - i < _MAX_WORDS:
            values, end = [values[0] * factor], end + 1
        if self.word(end) == "k" and self.glued(end) and values[-1] < 1000:  # 2700K is a temperature
            values, end = [*values[:-1], values[-1] * 1000], end + 1
        if (factor := units.MILLIONS.get(self.word(end))) and self._are_millions(i, end):
            values, end = [*values[:-1], values[-1] * factor], end + 1
        return values, end

    def _are_millions(self, i: int, end: int) -> bool:
        """Whether the letter behind a number is one of an amount of money: $5m, 5 m euros, but not 5 m, $20."""
        glued, signed = self.glued(end), self.word(i - 1) == "-"
        if (self.glued(end + 1) and self.word(end + 1).isalnum()) or (not glued and self.written[end].isupper()):
            return False  # $25 M is of that size
        before = self.word(i - 1 - signed) in currencies.MONEY and (glued or not self.begins_number(i - 2 - signed))
        if glued and self.word(i - 1) in units.RANGES and self.begins_number(i - 2):  # $5-10m
            before = before or self.word(i - 3) in currencies.MONEY
        after = self.word(end + 1)
        named = after in currencies.MONEY or after in ("pound", "pounds") or self.phrase(end + 1) is not None
        return before or (named and not self.begins_number(end + 2))

    def phrase(self, i: int) -> tuple[units.Unit, int] | None:
        """The unit of several words at a token, and the token after it."""
        for length in units.PHRASE_LENGTHS:
            if unit := units.PHRASES.get(tuple(self.words[i : i + length])):
                return unit, i + length
        return None

    def _is_group(self, i: int) -> bool:
        """Whether three digits stand after a space: the 000 of 1 000."""
        word = self.word(i)
        if not word[:3].isdecimal() or word[3:4].isdecimal() or len(word) < 3:
            return False
        return self.starts[i] == self.ends[i - 1] + 1

    def _is_tied(self, i: int) -> bool:
        """Whether a word that is no number follows a hyphen: the five of thirty five-litre cans."""
        if self.word(i + 1) != "-" or not self.glued(i + 1) or not self.glued(i + 2):
            return False
        return self.word(i + 2).isalpha() and self.word(i + 2) not in units.SMALL | units.LARGE

    def _number_words(self, i: int) -> Number:
        start, total, current, room, power = i, 0, -1, 1 << 62, 1 << 62  # what may follow is smaller than the last two
        if self.are(i, "a", "couple", "of"):
            return self._times_large([Fraction(2)], i + 3, i)
        if self.word(i) in units.LARGE and self.word(i - 1) in _SOME:
            return None  # several hundred
        if self.word(i) == "a" and self.word(i + 1) in units.LARGE:
            current, i = 1, i + 1
        while i - start < _MAX_WORDS:
            skip = self.word(i) in ("-", "and") and current >= 0
            word = self.word(i)
            small, large = units.SMALL.get(self.word(i + skip)), units.LARGE.get(word)
            if skip and word == "and" and room not in (100, 1000):
                break
            if current >= 0 and not skip and self._is_tied(i):
                break
            if small is not None and small < room and (current < 0 or small):
                current, room, i = max(current, 0) + small, (10 if small >= 20 else 0), i + skip + 1
            elif large is not None and large < power and (0 < current < large or (start == i and word not in _SHORT)):
                current = max(current, 1) * large
                room = 100 if large == 100 else 0
                if large >= 1000:
                    total, current, room, power = total + current, 0, 1000, large
                i += 1
            else:
                break
        after = self.word(i + 1) in units.SMALL and self.word(i + 1) != "one"
        alone = i - start == 1 and self.word(start) == "one" and not (after and self.word(i) in units.RANGES)
        if (
            i == start
            or current < 0
            or (alone and self.word(i) not in units.UNITS and self.word(i) not in units.ADJECTIVES)
        ):
            return None
        return [Fraction(total + current)], i
