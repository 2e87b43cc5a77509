"""What a fact is, and how numbers, units, bounds and dates are written; tables for `core.mentions`."""

import re
import unicodedata
from fractions import Fraction
from math import floor
from typing import NamedTuple

from core.currencies import MAX_WORDS, MONEY, OF_COUNTRIES

DAY = 1440  # minutes
MAX_DIGITS = 30  # of a number; longer ones are codes
_PIECE = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)*")
_POINTED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?$|\d+,\d+$")  # 1.250,50 and 0,5
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$")


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


class Unit(NamedTuple):
    """What a unit measures, and how many of the first unit of that it is, from where; of money its currency."""

    kind: str
    factor: Fraction = Fraction(1)
    name: str = ""
    zero: Fraction = Fraction(0)

    def value(self, count: Fraction) -> Fraction:
        """So many of it, in the first unit."""
        return (count - self.zero) * self.factor

    def fact(self, count: Fraction, name: str = "") -> Fact:
        """So many of it, exactly."""
        return Fact(self.kind, self.value(count), self.value(count), name or self.name)


CELSIUS, FAHRENHEIT = Unit("degree"), Unit("degree", Fraction(5, 9), zero=Fraction(32))


_WRITTEN: dict[str, tuple[tuple[str, str], ...]] = {  # what is measured -> factors, and spellings
    "m": (
        *(("0.000000001", "nm"), ("0.000001", "\u00b5m micron microns")),
        *(("0.001", "mm millimetre millimetres millimeter millimeters"),),
        *(("0.01", "cm centimetre centimetres centimeter centimeters"), ("1", "m metre metres meter meters")),
        *(("1000", "km kilometre kilometres kilometer kilometers"), ("0.0254", "inch inches")),
        *(("0.3048", "ft foot feet"), ("0.9144", "yd yard yards"), ("1609.344", "mi mile miles")),
    ),
    "g": (
        *(
            ("0.000001", "mcg ug \u00b5g microgram micrograms"),
            ("0.001", "mg milligram milligrams"),
            ("1", "g gram grams gramme grammes"),
        ),
        *(("1000", "kg kilo kilos kilogram kilograms"), ("1000000", "t tonne tonnes")),
        *(("6350.29318", "stone"), ("453.59237", "lb lbs"), ("28.349523125", "oz ounce ounces")),
    ),
    "l": (
        *(("0.001", "ml millilitre millilitres milliliter milliliters"), ("0.01", "cl centilitre centilitres")),
        *(("0.1", "dl decilitre decilitres"), ("1", "l litre litres liter liters")),
    ),
    "gallon": (("1", "gallon gallons"), ("1/4", "quart quarts"), ("1/8", "pint pints")),  # of Britain or the US
    "fl oz": (("1", "floz"),),  # of either
    "s": (
        *(("0.001", "ms millisecond milliseconds"), ("1", "s sec secs second seconds")),
        *(("60", "min mins minute minutes"), ("3600", "h hr hrs hour hours"), ("86400", "day days")),
        *(("604800", "week weeks wk wks"), ("1209600", "fortnight fortnights")),
    ),
    "night": (("1", "night nights"),),  # three nights are two days or four
    "month": (
        *(("1", "month months mth mths mos"), ("12", "year years yr yrs annum"), ("120", "decade decades")),
        *(("1200", "century centuries"),),
    ),
    "byte": (
        *(("1", "byte bytes"), ("1000", "kb kilobyte kilobytes"), ("1000000", "mb megabyte megabytes")),
        *(("1000000000", "gb gigabyte gigabytes"), ("1000000000000", "tb terabyte terabytes")),
        *(("1024", "kib"), ("1048576", "mib"), ("1073741824", "gib"), ("1099511627776", "tib")),
    ),
    "mol": (("0.000001", "\u00b5mol"), ("0.001", "mmol"), ("1", "mol")),
    "IU": (("1", "iu"),),
    "W": (
        *(("0.001", "milliwatt milliwatts"), ("1", "w watt watts"), ("1000", "kw kilowatt kilowatts")),
        *(("1000000", "megawatt megawatts mw"), ("1000000000", "gw gigawatt gigawatts")),
    ),
    "Wh": (
        *(("0.001", "milliwatthour"), ("1", "wh watthour watthours"), ("1000", "kwh kilowatthour kilowatthours")),
        *(("1000000", "megawatthour megawatthours mwh"), ("1000000000", "gwh"), ("1000000000000", "twh")),
    ),
    "bit": (
        *(("1", "bit bits"), ("1000", "kbit kilobit kilobits"), ("1000000", "mbit megabit megabits")),
        *(("1000000000", "gbit gigabit gigabits"),),
    ),
    "bit/s": (("1000", "kbps"), ("1000000", "mbps"), ("1000000000", "gbps"), ("1000000000000", "tbps")),
    "byte/s": (("1000", "kilobyteps"), ("1000000", "megabyteps"), ("1000000000", "gigabyteps")),
    "J": (
        *(("0.001", "millijoule"), ("1", "joule joules"), ("1000000", "megajoule mj"), ("1000", "kj")),
        *(("4.184", "cal"), ("4184", "kcal")),
    ),
    "ohm": (("1", "ohm ohms \u03c9"), ("1000", "kohm kohms k\u03c9"), ("1000000", "megohm megohms")),
    "Pa": (
        *(("0.001", "millipascal"), ("1", "pascal pascals"), ("100", "hpa mbar"), ("1000", "kpa"), ("1000000", "mpa")),
        *(("100000", "bar"), ("6894.757", "psi")),
    ),
    "V": (("1", "v volt volts"), ("0.001", "millivolt millivolts mv"), ("1000", "kv"), ("1000000", "megavolt")),
    "A": (("0.001", "ma milliamp milliamps milliampere milliamperes"), ("1", "ampere amperes amp amps")),
    "K": (("1", "kelvin kelvins"),),
    "dB": (("1", "db"),),
    "ppm": (("1", "ppm"),),
    "Ah": (("0.001", "mah"), ("1", "ah")),
    "Hz": (("0.001", "millihertz"), ("1", "hz hertz"), ("1000", "khz"), ("1000000", "mhz"), ("1000000000", "ghz")),
    "rpm": (("1", "rpm"),),
    "m/s": (("0.44704", "mph"), ("1/3.6", "kph kmh")),
    "m2": (("1", "m\u00b2 sqm"), ("10000", "ha hectare hectares"), ("4046.8564224", "acre acres")),
    "m3": (("1", "m\u00b3 cbm"),),
    "times": (("1", "times"),),
    "%": (("1", "% percent pct"),),
}


def word_set(text: str) -> frozenset[str]:
    """The words that stand in a text with spaces between."""
    return frozenset(text.split())


def _factor(written: str) -> Fraction:
    above, _, below = written.partition("/")
    return Fraction(above) / Fraction(below or "1")


UNITS = {
    **{
        word: Unit(kind, _factor(factor))
        for kind, some in _WRITTEN.items()
        for factor, words in some
        for word in words.split()
    },
    **{word: Unit("money", name=name) for word, name in MONEY.items()},
    **dict.fromkeys(("pence", "penny"), Unit("money", Fraction(1, 100), "\u00a3")),
    **{"\u2103": CELSIUS, "\u2109": FAHRENHEIT},
}
CASED = {  # what another case would make another unit of
    "K": UNITS["kelvin"],
    "mW": UNITS["milliwatt"],
    "mWh": UNITS["milliwatthour"],
    "mHz": UNITS["millihertz"],
    "mJ": UNITS["millijoule"],
    "MV": UNITS["megavolt"],
    "Mb": UNITS["mbit"],
    "Gb": UNITS["gbit"],
    "M\u03a9": UNITS["megohm"],
    "mPa": UNITS["millipascal"],
    **dict.fromkeys(("kBps", "KBps"), UNITS["kilobyteps"]),
    **{"MBps": UNITS["megabyteps"], "GBps": UNITS["gigabyteps"]},
}
PHRASES = {
    ("per", "cent"): UNITS["%"],
    ("percentage", "points"): UNITS["%"],
    ("basis", "points"): Unit("%", Fraction(1, 100)),
    **dict.fromkeys((("fl", "oz"), ("fl", ".", "oz"), ("fluid", "ounce"), ("fluid", "ounces")), UNITS["floz"]),
    **{words: Unit("money", name=name) for words, name in OF_COUNTRIES.items()},
}
PHRASE_LENGTHS = range(2, MAX_WORDS + 1)  # in words and marks
POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
NAMES = {unit: word for word, unit in reversed(UNITS.items())}  # the first of each
BY_THE_HOUR = {"W": "Wh", "A": "Ah"}  # kilowatt-hours
_DURATIONS = frozenset(("s", "night", "month"))
RATED = frozenset(kind for kind in _WRITTEN if "/" not in kind)  # kinds of which there may be so many per something
# Kinds without a unit: of these the same digits are never "of another unit".
UNITLESS = frozenset(("number", "code", "model", "version", "date", "time", "ordinal", "times"))
PERIODS = {
    **{
        word: unit
        for word, unit in UNITS.items()
        if unit.kind == "month" or (unit.kind == "s" and unit.factor >= 86400)
    },
    **{"daily": UNITS["day"], "weekly": UNITS["week"], "monthly": UNITS["month"]},
    **dict.fromkeys(("yearly", "annually"), UNITS["year"]),
}
MILLIONS = {"m": 10**6, "mn": 10**6, "b": 10**9}  # beside a currency: $5M, 5m euros
# What may be either: 12 pounds, 50 cents.
EITHER = {
    **dict.fromkeys(("pound", "pounds"), (Unit("money", name="\u00a3"), UNITS["lb"])),
    **dict.fromkeys(("cent", "cents"), tuple(Unit("money", Fraction(1, 100), name) for name in ("$", "\u20ac"))),
    "kr": (UNITS["nok"], UNITS["dkk"], UNITS["sek"]),
    **dict.fromkeys(("krone", "kroner"), (UNITS["nok"], UNITS["dkk"])),
}
# Kinds whose amounts a smaller unit may go on: 5 ft 6 in; and units that two digits alone go on, before an end.
MIXED = frozenset(("s", "month", "money", "m", "g", "l", "pound"))
IN_PARTS = {UNITS["hour"]: 60, **dict.fromkeys((*map(UNITS.get, ("m", "euro", "dollar")), Unit("pound")), 100)}
# One letter is a unit in this case only: "5 M" is a size.
RANGES = frozenset(("-", "to", "through", "thru", "till", "until"))  # between two amounts
LETTERS = frozenset("mgtsh") | frozenset("HlLwWvVK")
# Of these "a" is one: a week.
SPANS = frozenset(("minute", "hour", "day", "week", "fortnight", "month", "year", "decade", "century"))
UNITS |= {f"{span}'s": UNITS[span] for span in SPANS}  # one year's warranty
ADJECTIVES = frozenset(("business", "working", "calendar", "consecutive", "full", "whole", "straight", "more"))
MARKS = frozenset(".,;:!?()")  # end a clause
AFTER_PARTS = MARKS | frozenset(("", "long", "tall", "high", "wide", "deep"))  # 1 m 80 long
# Behind these a smaller unit may follow after a point: 6 ft. 2 in.
POINTED = frozenset(("ft", "lb", "lbs", "hr", "hrs", "min", "mins", "yr", "yrs"))
TIMES = {"once": 1, "twice": 2, "thrice": 3}
OFTEN = frozenset(("a", "an", "per", "every", "each", "daily", "weekly", "monthly", "yearly"))  # once a week
OWNED = frozenset(("the", "all", "my", "your", "his", "her", "its", "our", "their"))  # half the seats
COUNTS = frozenset(("pc", "pcs", "pk", "x", "er"))  # letters behind a number that make no model of it

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
LARGE = {
    "dozen": 12, "hundred": 100, "thousand": 1000, "lakh": 10**5, "million": 10**6, "mio": 10**6, "mln": 10**6,
    "crore": 10**7, "bn": 10**9, "billion": 10**9, "tn": 10**12, "trillion": 10**12,
}  # fmt: skip
FRACTIONS = {  # of something: a third of the seats
    name + plural: Fraction(1, below)
    for name, below in {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}.items()
    for plural in ("", "s")
}
# Characters for fractions, as \u00be: 3/4.
PARTS = {
    mark: Fraction(unicodedata.normalize("NFKC", mark).replace("\u2044", "/"))
    for mark in map(chr, (*range(0xBC, 0xBF), *range(0x2150, 0x215F), 0x2189))
}
# What 3/8 may have below: 24/7, 3/12 and 50/50 are no fractions.
BELOW = frozenset((2, 3, 4, 5, 6, 8, 10, 16, 32, 64))
# Of these one takes a part, though they are no units here: 1/2 cup.
PORTIONS = word_set(
    """
    bag bags bottle bottles cup cups dose doses gallon gallons glass glasses pack packs page pages pill pills pint pints
    portion portions quart quarts serving servings slice slices tablespoon tablespoons tablet tablets tbsp teaspoon
    teaspoons ton tons tsp turn turns
    """
)
# Behind these 3/8 is the third of eight.
NUMBERED = word_set(
    """
    case chapter day episode exercise file image item lesson level no number page part photo question round section
    sheet slide stage step task volume week
    """
)
ORDINALS = {
    word: number
    for number, word in enumerate(
        (
            *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
            *("eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth"),
            *("eighteenth", "nineteenth"),
        ),
        1,
    )
} | {f"{word.removesuffix('y')}ieth": number for word, number in SMALL.items() if number >= 20}
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
MONTHS = {word: number for number, word in enumerate(_MONTHS, 1)}
SHORT_MONTHS = {word[:3]: number for word, number in MONTHS.items()} | {"sept": 9}  # only beside a number


def _phrases(side: str, strict: bool, *phrases: str) -> dict[tuple[str, ...], tuple[str, bool]]:
    return {tuple(phrase.split()): (side, strict) for phrase in phrases}


# Words before an amount -> the side that they bound, and whether the amount itself is out. "Not" before them, or "no"
# before a comparison, turns them round.
BOUNDS_BEFORE = {
    **_phrases("high", False, "at most", "at the most", "up to", "within", "maximum of", "maximum", "max", "max ."),
    **_phrases("high", True, "less than", "fewer than", "under", "below", "shorter than", "younger than"),
    **_phrases("high", True, "earlier than", "sooner than", "lower than", "smaller than"),
    **_phrases("low", False, "at least", "at the least", "minimum of", "minimum", "min ."),
    **_phrases("low", True, "more than", "over", "above", "longer than", "older than", "exceeding", "greater than"),
    **_phrases("low", True, "later than", "higher than", "larger than", "exceed", "exceeds"),
    **_phrases("high", False, "< =", "\u2264"),
    **_phrases("high", True, "<"),
    **_phrases("low", False, "> =", "\u2265"),
    **_phrases("low", True, ">"),
}
PASSED_OVER = (("the", "age", "of"), ("age",), ("the",))  # between a bound and its amount
LIMITS = frozenset(("minimum", "maximum"))  # a word or two and "of" or "is" may follow these: a minimum stay of
# The same before these kinds of amounts only.
SOME_BOUNDS = {
    "after": ("low", frozenset(("s", "night", "month"))),
    "from": ("low", frozenset(("money", "number", "time", "s", "night", "month", "%", "g", "m", "l"))),
    "until": ("high", frozenset(("time", "s", "month"))),
    "till": ("high", frozenset(("time", "s", "month"))),
}
MAX_FROM = 120  # of a number without a unit after "from": an age, a size of a group
BOUNDS_AFTER = {
    **_phrases("high", False, "at most", "at the most", "or less", "or fewer", "at the latest", "maximum", "max"),
    **_phrases("high", False, "or under", "or younger", "or below", "and under", "and younger", "and below"),
    **_phrases("low", False, "at least", "or more", "or longer", "or over", "or above", "or older", "or up"),
    **_phrases("low", False, "or later", "or newer", "or higher", "and later", "and newer", "and higher"),
    **_phrases("high", False, "or earlier", "and earlier"),
    **_phrases("low", False, "and over", "and above", "and older", "and up", "minimum", "at the earliest"),
}
# After these 3.10 is not 3.1.
DOTTED = word_set("v version versions release section sections chapter clause article python \u00a7 paragraph")


def rate(fact: Fact, below: Unit) -> Fact:
    """So much for each of a unit, as 20 litres per minute.

    A duration is per day, per week or whatever is said: eight hours a day are forty a week to some.
    """
    unit = NAMES.get(below, below.kind) if fact.kind in _DURATIONS else below.kind
    low, high = (value if value is None else value / below.factor for value in (fact.low, fact.high))
    return fact._replace(kind=f"{fact.kind}/{unit}", low=low, high=high)


def bounded(fact: Fact, side: str, strict: bool) -> Fact:
    """The fact as a bound, of a version by its name; of dates and of ranges but those of shares as it is."""
    if (not fact.exact and fact.kind != "%") or fact.kind == "date":
        return fact
    if fact.kind == "version":
        return fact._replace(name=f"{fact.name} {'beyond' if strict else 'from'} {side}")
    if fact.kind == "time" and side == "high" and not fact.high:  # until midnight
        fact = fact._replace(high=Fraction(DAY))
    low, high = (None, fact.high) if side == "high" else (fact.low, None)
    return Fact(fact.kind, low, high, fact.name, strict)


def share(part: Fraction) -> Fact:
    """A part of a whole as a percentage; a third is 33 to 33.4 %, as people round it."""
    percent = 100 * part
    if percent * 10 % 1 == 0:
        return Fact("%", percent, percent)
    whole, tenths = Fraction(round(percent)), Fraction(floor(percent * 10), 10)
    return Fact("%", min(whole, tenths), max(whole, tenths + Fraction(1, 10)))


def is_grouped(written: str) -> bool:
    """Whether points or commas stand between thousands or before decimals as in 1.250,50 or 0,5."""
    return _POINTED.match(written) is not None


def values_of(written: str) -> list[Fraction]:
    """The numbers of digits with points and commas: 1,000.5, 1.000,5, 0,5, and several of 3.10,3.11.

    Nothing where one of them has too many digits.
    """
    if _POINTED.match(written) and not _GROUPED.match(written):
        pieces = [written.replace(".", "").replace(",", ".")]
    else:
        pieces = [each.replace(",", "") for each in _PIECE.findall(written)]
    if any(len(digits) > MAX_DIGITS for each in pieces for digits in each.split(".")):
        return []
    return [_value(each) for each in pieces]


def _value(written: str) -> Fraction:
    whole, _, part = written.partition(".")
    return Fraction(f"{whole}.{part}" if part.isdecimal() else whole)
