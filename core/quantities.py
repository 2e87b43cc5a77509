"""Numbers, codes, sizes and units: two texts that differ in them are no duplicates, however alike their words are.

Embeddings hardly see that "M6 x 20" is not "M6 x 30" or order 4711 not 4712. What both texts have is compared: a text
that says more ("M6 x 20, 100 pieces") agrees with one that says less. The table of units is small on purpose: pint
reads units by themselves and takes a third of a second to import; here one looks for them in sentences.
"""

import re
from typing import NamedTuple

# Unit -> its dimension, and how many of the dimension's first unit it is.
_UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("mm", "millimetre", "millimetres", "millimeter", "millimeters"), ("m", 0.001)),
    **dict.fromkeys(("cm", "centimetre", "centimetres", "centimeter", "centimeters"), ("m", 0.01)),
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), ("m", 1.0)),
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), ("m", 1000.0)),
    **dict.fromkeys(("in", "inch", "inches", '"'), ("m", 0.0254)),
    **dict.fromkeys(("ft", "foot", "feet"), ("m", 0.3048)),
    **dict.fromkeys(("mg", "milligram", "milligrams"), ("g", 0.001)),
    **dict.fromkeys(("g", "gram", "grams"), ("g", 1.0)),
    **dict.fromkeys(("kg", "kilo", "kilos", "kilogram", "kilograms"), ("g", 1000.0)),
    **dict.fromkeys(("lb", "lbs", "pound", "pounds"), ("g", 453.59237)),
    **dict.fromkeys(("oz", "ounce", "ounces"), ("g", 28.349523125)),
    **dict.fromkeys(("ml", "millilitre", "millilitres", "milliliter", "milliliters"), ("l", 0.001)),
    **dict.fromkeys(("cl", "centilitre", "centilitres"), ("l", 0.01)),
    **dict.fromkeys(("l", "litre", "litres", "liter", "liters"), ("l", 1.0)),
    **dict.fromkeys(("s", "sec", "second", "seconds"), ("s", 1.0)),
    **dict.fromkeys(("min", "minute", "minutes"), ("s", 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("s", 3600.0)),
    **dict.fromkeys(("day", "days"), ("s", 86400.0)),
    **dict.fromkeys(("week", "weeks"), ("s", 604800.0)),
    **dict.fromkeys(("mb", "megabyte", "megabytes"), ("byte", 1000000.0)),
    **dict.fromkeys(("gb", "gigabyte", "gigabytes"), ("byte", 1000000000.0)),
    **dict.fromkeys(("tb", "terabyte", "terabytes"), ("byte", 1000000000000.0)),
    **dict.fromkeys(("w", "watt", "watts"), ("W", 1.0)),
    **dict.fromkeys(("kw", "kilowatt", "kilowatts"), ("W", 1000.0)),
    **dict.fromkeys(("v", "volt", "volts"), ("V", 1.0)),
    **dict.fromkeys(("mah",), ("Ah", 0.001)),
    **dict.fromkeys(("ah",), ("Ah", 1.0)),
    **dict.fromkeys(("month", "months"), ("month", 1.0)),
    **dict.fromkeys(("year", "years"), ("month", 12.0)),
    **dict.fromkeys(("\u20ac", "eur", "euro", "euros"), ("\u20ac", 1.0)),
    **dict.fromkeys(("$", "usd", "dollar", "dollars"), ("$", 1.0)),
    **dict.fromkeys(("\u00a3", "gbp"), ("\u00a3", 1.0)),
    **dict.fromkeys(("rpm",), ("rpm", 1.0)),
    **dict.fromkeys(("hz", "hertz"), ("Hz", 1.0)),
    **dict.fromkeys(("khz",), ("Hz", 1000.0)),
    **dict.fromkeys(("%", "percent", "per cent"), ("%", 1.0)),
}
_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {  # "one" alone is more often no number
    **{word: float(n) for n, word in enumerate(_ONES, 1) if n > 1},
    **{"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16},
    **{"seventeen": 17, "eighteen": 18, "nineteen": 19, "hundred": 100, "thousand": 1000},
    **{word: 10.0 * n for n, word in enumerate(_TENS, 2)},
    **{f"{ten}-{one}": 10.0 * n + m for n, ten in enumerate(_TENS, 2) for m, one in enumerate(_ONES, 1)},
}
_ORDINALS = {
    **{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8},
    **{"ninth": 9, "tenth": 10},
}
_COUNTS = frozenset(("pc", "pcs", "pk", "st", "x", "er"))  # letters behind a number that make no model of it
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_TIMES = re.compile(r"(?<=\d)\s*[x\u00d7*]\s*(?=\d)", re.IGNORECASE)  # 20x30, M6 x 20
_NUMBER = r"\d+(?:[.,]\d+)*"
_NAMES = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_WRITTEN = "|".join(sorted(_WORDS, key=len, reverse=True))
_MEASURED = re.compile(  # 500 ml, thirty days, 5 to 7 working days
    rf"(?:(?<![\w.,])({_NUMBER}|{_WRITTEN})(?:(?<=\d)\s?-\s?|\s?\u2013\s?|\s(?:to|and|or)\s))?"
    rf"(?<![\w.,])({_NUMBER}|{_WRITTEN})(?:\s|-)?(?:(?:business|working|calendar)\s)?({_NAMES})(?!\w)",
    re.IGNORECASE,
)
_PAID = re.compile(rf"([\u20ac$\u00a3])\s?({_NUMBER})")
_CLOCK = re.compile(
    r"(?<![\w.,:])(\d{1,2})(?::(\d\d))?\s?([ap])(?:m\b|\.m\b\.?)|(?<![\w.,:])(\d{1,2}):(\d\d)(?![\w:])", re.I
)
_MONTH = re.compile(rf"(?<=\d )({'|'.join(_MONTHS)})\b|\b({'|'.join(_MONTHS)})(?= \d)", re.IGNORECASE)
_CODE = re.compile(r"(?<!\w)(?=[\w-]*\d)(?=[\w-]*[^\W\d_])\w+(?:-\w+)*")
_PLAIN = re.compile(_NUMBER)
_WORD = re.compile(rf"\b(?:{_WRITTEN})\b", re.IGNORECASE)
_ORDINAL = re.compile(rf"\b(?:({'|'.join(_ORDINALS)})|(\d+)(?:st|nd|rd|th))\b", re.IGNORECASE)
_SIZE_APART = re.compile(r"(?<=\d) (?=(?:XXL|XL|XS)\b)")  # 603 XL is 603XL
_MODEL = re.compile(r"(\d{3,})([a-z]{1,3})$")

Said = tuple[str, float | str]  # a dimension, "number" or "code", and the value


class Difference(NamedTuple):
    """What two texts do not share, as it is written in each."""

    a: str
    b: str

    def __str__(self) -> str:
        """How a person would say it."""
        return f"{self.a} is not {self.b}"


def has_quantity(text: str) -> bool:
    """Whether a text may say any; a quick look, so that most texts are not read."""
    return any(map(str.isdigit, text)) or _WORD.search(text) is not None


def quantities(text: str) -> dict[Said, str]:
    """What a text says of each kind, and how it is written there."""
    found: dict[Said, str] = {}
    rest = _SIZE_APART.sub("", _TIMES.sub(" x ", text))

    def ordinal(match: re.Match[str]) -> str:
        found["ordinal", float(match[2] or _ORDINALS[match[1].lower()])] = match[0]
        return " "

    def measured(match: re.Match[str]) -> str:
        dimension, factor = _UNITS[match[3].lower()]
        for written in filter(None, match.group(1, 2)):
            for value in _values(written):
                found[dimension, _rounded(value * factor)] = match[0]
        return " "

    def paid(match: re.Match[str]) -> str:
        for value in _values(match[2]):
            found[match[1], _rounded(value)] = match[0]
        return " "

    def clock(match: re.Match[str]) -> str:
        hour, minute = int(match[1] or match[4]), int(match[2] or match[5] or 0)
        half = (match[3] or "").lower()
        hour = hour % 12 + 12 * (half == "p") if half else hour
        found["time", hour * 60.0 + minute] = match[0].strip()
        return " "

    def month(match: re.Match[str]) -> str:
        found["month of the year", _MONTHS.index((match[1] or match[2]).lower()) + 1.0] = match[0]
        return " "

    def code(match: re.Match[str]) -> str:
        name = re.sub(r"[-_]", "", match[0]).casefold()
        if (model := _MODEL.match(name)) is None:
            found["code", name] = match[0]
        elif model[2] in _COUNTS:
            found["number", float(model[1])] = match[0]
        else:
            found["model", name] = match[0]
        return " "

    readers = (
        *((_PAID, paid), (_CLOCK, clock), (_MONTH, month)),
        *((_ORDINAL, ordinal), (_MEASURED, measured), (_CODE, code)),
    )
    for pattern, reader in readers:
        rest = pattern.sub(reader, rest)
    for match in _PLAIN.finditer(rest):
        for value in _values(match[0]):
            found["number", _rounded(value)] = match[0]
        if match[0].isdigit() and len(match[0]) > 2:  # 603 is not 603XL
            found["model", match[0]] = match[0]
    for match in _WORD.finditer(rest):
        found["number", _WORDS[match[0].lower()]] = match[0]
    return found


def differences(a: dict[Said, str], b: dict[Said, str]) -> list[Difference]:
    """For each kind of which both texts have some: one that each has and the other has not."""
    found = []
    for kind in dict.fromkeys(kind for kind, _ in a):
        own, other = ({key for key in side if key[0] == kind} for side in (a, b))
        if other and own - other and other - own:
            found.append(
                Difference(
                    min((a[key] for key in own - other), key=_order), min((b[key] for key in other - own), key=_order)
                )
            )
    return list(dict.fromkeys(found))  # 4711 is a number and may be a model


def within_ranges(a: dict[Said, str], text: str) -> dict[Said, str]:
    """What a text says, without what another one gives a range for: 6 days, where that has 5 to 7 days."""
    ranges = []
    for match in _MEASURED.finditer(text):
        if match[1]:
            dimension, factor = _UNITS[match[3].lower()]
            low, high = (_values(written)[0] * factor for written in match.group(1, 2))
            ranges.append((dimension, low, high))
    return {
        key: written
        for key, written in a.items()
        if not any(key[0] == kind and low <= float(key[1]) <= high for kind, low, high in ranges)
    }


def _values(written: str) -> list[float]:
    """The numbers of digits with points and commas: 1,000; 0,5; 1.000,5; of a date 26.11.2026 its three."""
    if (value := _WORDS.get(written.lower())) is not None:
        return [value]
    marks = [mark for mark in written if not mark.isdigit()]
    if len(marks) > 1 and len(set(marks)) == 1 and not all(len(part) == 3 for part in re.split(r"[.,]", written)[1:]):
        return [float(part) for part in re.split(r"[.,]", written)]
    if len(set(marks)) == 2:
        decimal = marks[-1]
        return [float(written.replace("," if decimal == "." else ".", "").replace(decimal, "."))]
    if marks and marks[0] == "," and all(len(part) == 3 for part in written.split(",")[1:]):
        return [float(written.replace(",", ""))]
    if len(marks) > 1:  # 1.000.000
        return [float(re.sub(r"[.,]", "", written))]
    return [float(written.replace(",", "."))]


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _order(text: str) -> tuple[int, str]:
    return len(text), text
