"""How numbers, units, bounds and dates are written; tables for `core.mentions`."""

import re
from fractions import Fraction
from typing import NamedTuple

_PIECE = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)*")
_POINTED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?$|\d+,\d+$")  # 1.250,50 and 0,5
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$")


class Unit(NamedTuple):
    """What a unit measures, and how many of the first unit of that it is; of money its currency."""

    kind: str
    factor: Fraction = Fraction(1)
    name: str = ""


_WRITTEN: dict[str, tuple[tuple[str, str], ...]] = {  # what is measured -> factors, and spellings
    "m": (
        *(("0.001", "mm millimetre millimetres millimeter millimeters"),),
        *(("0.01", "cm centimetre centimetres centimeter centimeters"), ("1", "m metre metres meter meters")),
        *(("1000", "km kilometre kilometres kilometer kilometers"), ("0.0254", "inch inches")),
        *(("0.3048", "ft foot feet"), ("0.9144", "yd yard yards"), ("1609.344", "mi mile miles")),
    ),
    "g": (
        *(("0.001", "mg milligram milligrams"), ("1", "g gram grams gramme grammes")),
        *(("1000", "kg kilo kilos kilogram kilograms"), ("1000000", "t tonne tonnes")),
        *(("453.59237", "lb lbs pound pounds"), ("28.349523125", "oz ounce ounces")),
    ),
    "l": (
        *(("0.001", "ml millilitre millilitres milliliter milliliters"), ("0.01", "cl centilitre centilitres")),
        *(("0.1", "dl decilitre decilitres"), ("1", "l litre litres liter liters")),
    ),
    "s": (
        *(("0.001", "ms millisecond milliseconds"), ("1", "s sec secs second seconds")),
        *(("60", "min mins minute minutes"), ("3600", "h hr hrs hour hours"), ("86400", "day days night nights")),
        *(("604800", "week weeks"), ("1209600", "fortnight fortnights")),
    ),
    "month": (("1", "month months"), ("12", "year years yr yrs")),
    "byte": (
        *(("1000", "kb kilobyte kilobytes"), ("1000000", "mb megabyte megabytes")),
        *(("1000000000", "gb gigabyte gigabytes"), ("1000000000000", "tb terabyte terabytes")),
    ),
    "W": (("1", "w watt watts"), ("1000", "kw kilowatt kilowatts")),
    "Wh": (("1", "wh"), ("1000", "kwh")),
    "V": (("1", "v volt volts"),),
    "Ah": (("0.001", "mah"), ("1", "ah")),
    "Hz": (("1", "hz hertz"), ("1000", "khz"), ("1000000", "mhz"), ("1000000000", "ghz")),
    "rpm": (("1", "rpm"),),
    "m/s": (("0.44704", "mph"), ("1/3.6", "kph kmh")),
    "m2": (("1", "m\u00b2 sqm"),),
    "%": (("1", "% percent pct"),),
}
CURRENCIES = {
    "\u20ac": "\u20ac eur euro euros", "$": "$ usd dollar dollars", "\u00a3": "\u00a3 gbp sterling quid",
    "\u00a5": "\u00a5 jpy yen", "\u20b9": "\u20b9 inr rupee rupees", "chf": "chf", "sek": "sek", "nok": "nok",
    "dkk": "dkk", "pln": "pln", "cny": "cny", "aud": "aud", "cad": "cad",
}  # fmt: skip


def _factor(written: str) -> Fraction:
    above, _, below = written.partition("/")
    return Fraction(above) / Fraction(below or "1")


MONEY = {word: name for name, words in CURRENCIES.items() for word in words.split()}
UNITS = {
    **{
        word: Unit(kind, _factor(factor))
        for kind, some in _WRITTEN.items()
        for factor, words in some
        for word in words.split()
    },
    **{word: Unit("money", name=name) for word, name in MONEY.items()},
}
# One letter is a unit in this case only: "5 M" is a size.
LETTERS = frozenset("mgtsh") | frozenset("lLwWvV")
# Of these "a" is one: a week.
SPANS = frozenset(("minute", "hour", "day", "week", "fortnight", "month", "year"))
ADJECTIVES = frozenset(("business", "working", "calendar", "consecutive", "full", "whole", "straight", "more"))
COUNTS = frozenset(("pc", "pcs", "pk", "st", "x", "er"))  # letters behind a number that make no model of it

SMALL = {
    word: number
    for number, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
            *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
        )
    )
} | {
    word: 10 * number
    for number, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2)
}
LARGE = {"hundred": 100, "dozen": 12, "thousand": 1000, "million": 10**6, "bn": 10**9, "billion": 10**9}
PARTS = {"\u00bd": Fraction(1, 2), "\u00bc": Fraction(1, 4), "\u00be": Fraction(3, 4)}
ORDINALS = {
    word: number
    for number, word in enumerate(
        ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"), 1
    )
}
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
MONTHS = {word: number for number, word in enumerate(_MONTHS, 1)}
SHORT_MONTHS = {word[:3]: number for word, number in MONTHS.items()} | {"sept": 9}  # only beside a number

# Words before an amount -> the side that they bound, and whether the amount itself is out.
BOUNDS_BEFORE: dict[tuple[str, ...], tuple[str, bool]] = {
    **{
        tuple(words.split()): ("high", False)
        for words in (
            *("at most", "no more than", "not more than", "no longer than", "not longer than", "no later than"),
            *(
                "not later than",
                "up to",
                "within",
                "not exceeding",
                "maximum of",
                "maximum",
                "max",
                "max .",
                "not over",
            ),
            *("no greater than", "not above"),
        )
    },
    **{tuple(words.split()): ("high", True) for words in ("less than", "fewer than", "under", "below", "shorter than")},
    **{
        tuple(words.split()): ("low", False)
        for words in (
            *("at least", "no less than", "no fewer than", "not less than", "not fewer than", "minimum of"),
            *("minimum", "min .", "not under", "not below", "no earlier than", "not earlier than"),
        )
    },
    **{
        tuple(words.split()): ("low", True)
        for words in ("more than", "over", "above", "longer than", "older than", "exceeding", "greater than")
    },
}
BOUNDS_AFTER: dict[tuple[str, ...], tuple[str, bool]] = {
    **{
        tuple(w.split()): ("high", False) for w in ("at most", "or less", "or fewer", "at the latest", "maximum", "max")
    },
    **{
        tuple(words.split()): ("low", False)
        for words in ("at least", "or more", "or longer", "or over", "or above", "and over", "and above", "minimum")
    },
}
# After these 3.10 is not 3.1.
DOTTED = frozenset(
    (
        *("v", "version", "versions", "release", "section", "sections", "chapter", "clause", "article", "python"),
        *("\u00a7", "paragraph"),
    )
)


def is_grouped(written: str) -> bool:
    """Whether points or commas stand between thousands or before decimals as in 1.250,50 or 0,5."""
    return _POINTED.match(written) is not None


def values_of(written: str) -> list[Fraction]:
    """The numbers of digits with points and commas: 1,000.5, 1.000,5, 0,5, and several of 3.10,3.11."""
    if _POINTED.match(written) and not _GROUPED.match(written):
        return [Fraction(written.replace(".", "").replace(",", "."))]
    return [_value(each) for each in _PIECE.findall(written)]


def _value(written: str) -> Fraction:
    whole, _, part = written.replace(",", "").partition(".")
    return Fraction(f"{whole}.{part}" if part.isdecimal() else whole)
