"""Numbers, codes, sizes and units: two texts that differ in them are no duplicates, however alike their words are.

Embeddings hardly see that "M6 x 20" is not "M6 x 30" or order 4711 not 4712. What both texts have is compared: a text
that says more ("M6 x 20, 100 pieces") agrees with one that says less. The table of units is small on purpose: pint
reads units by themselves and takes a third of a second to import; here one looks for them in sentences.
"""

import re

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
    **dict.fromkeys(("rpm",), ("rpm", 1.0)),
    **dict.fromkeys(("hz", "hertz"), ("Hz", 1.0)),
    **dict.fromkeys(("khz",), ("Hz", 1000.0)),
    **dict.fromkeys(("%", "percent", "per cent"), ("%", 1.0)),
}
_WORDS = {
    **{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7},
    **{"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12},
}
_ORDINALS = {
    **{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8},
    **{"ninth": 9, "tenth": 10},
}
_COUNTS = frozenset(("pc", "pcs", "pk", "st", "x", "er"))  # letters behind a number that make no model of it
_TIMES = re.compile(r"(?<=\d)\s*[x\u00d7*]\s*(?=\d)", re.IGNORECASE)  # 20x30, M6 x 20
_NUMBER = r"\d+(?:[.,]\d+)*"
_NAMES = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_MEASURED = re.compile(rf"(?<![\w.,])({_NUMBER})\s?({_NAMES})(?!\w)", re.IGNORECASE)
_CODE = re.compile(r"(?<!\w)(?=[\w-]*\d)(?=[\w-]*[^\W\d_])\w+(?:-\w+)*")
_PLAIN = re.compile(_NUMBER)
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_ORDINAL = re.compile(rf"\b(?:({'|'.join(_ORDINALS)})|(\d+)(?:st|nd|rd|th))\b", re.IGNORECASE)
_SIZE_APART = re.compile(r"(?<=\d) (?=(?:XXL|XL|XS)\b)")  # 603 XL is 603XL
_MODEL = re.compile(r"(\d{3,})([a-z]{1,3})$")

Said = tuple[str, float | str]  # a dimension, "number" or "code", and the value


def quantities(text: str) -> dict[Said, str]:
    """What a text says of each kind, and how it is written there."""
    found: dict[Said, str] = {}
    rest = _SIZE_APART.sub("", _TIMES.sub(" x ", text))

    def ordinal(match: re.Match[str]) -> str:
        found["ordinal", float(match[2] or _ORDINALS[match[1].lower()])] = match[0]
        return " "

    def measured(match: re.Match[str]) -> str:
        dimension, factor = _UNITS[match[2].lower()]
        for value in _values(match[1]):
            found[dimension, _rounded(value * factor)] = match[0]
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

    rest = _CODE.sub(code, _MEASURED.sub(measured, _ORDINAL.sub(ordinal, rest)))
    for match in _PLAIN.finditer(rest):
        for value in _values(match[0]):
            found["number", _rounded(value)] = match[0]
        if match[0].isdigit() and len(match[0]) > 2:  # 603 is not 603XL
            found["model", match[0]] = match[0]
    for match in _WORD.finditer(rest):
        found["number", float(_WORDS[match[0].lower()])] = match[0]
    return found


def _values(written: str) -> list[float]:
    """The numbers of digits with points and commas: 1,000; 0,5; 1.000,5; of a date 26.11.2026 its three."""
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
