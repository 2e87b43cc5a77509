"""Twenty edits that leave what a text says as it is: a row and its edited copy should be one.

A copy that cannot be edited so (a text without an article has none to drop) is the text itself.
"""

import random
import re
from collections.abc import Callable, Mapping

_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: str(n) for n, word in enumerate(_NAMES)}
_WORDS = {digits: word for word, digits in _NUMBERS.items()}
_LONG = re.compile(r"\b[A-Za-z]{6,}\b")


def typo(text: str, chosen: random.Random) -> str:
    """Two letters within a long word are exchanged."""
    found = list(_LONG.finditer(text))
    if not found:
        return text
    word = chosen.choice(found)
    at = word.start() + chosen.randrange(1, len(word[0]) - 2)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _always(edit: Callable[[str], str]) -> Callable[[str, random.Random], str]:
    return lambda text, _: edit(text)


def _digits(words: Mapping[str, str]) -> Callable[[str], str]:
    pattern = re.compile(rf"(?<![\w.,:/-])(?:{'|'.join(words)})(?![\w:/-]|[.,]\d)", re.IGNORECASE)
    return lambda text: pattern.sub(lambda match: words[match[0].lower()], text)


EDITS: Mapping[str, Callable[[str, random.Random], str]] = {
    "lower case": _always(str.lower),
    "capitals": _always(str.upper),
    "title case": _always(lambda text: " ".join(word[:1].upper() + word[1:] for word in text.split(" "))),
    "no mark at the end": _always(lambda text: text.rstrip(".?! ")),
    "a stop": _always(lambda text: text.rstrip(".?! ") + "."),
    "exclamation": _always(lambda text: text.rstrip(".?! ") + "!!"),
    "no commas": _always(lambda text: re.sub(r",(?=\s)", "", text)),
    "double spaces": _always(lambda text: text.replace(" ", "  ")),
    "no-break spaces": _always(lambda text: text.replace(" ", "\u00a0")),
    "spaces around": _always(lambda text: f" \t{text}\n"),
    "apostrophe": _always(lambda text: text.replace("'", "\u2019")),
    "no apostrophe": _always(lambda text: text.replace("'", "").replace("\u2019", "")),
    "quotes": _always(lambda text: f"\u201c{text}\u201d"),
    "full width": _always(
        lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text)
    ),
    "sharp s and umlauts": _always(
        lambda text: text.translate(
            {0xDF: "ss", 0xE4: "ae", 0xF6: "oe", 0xFC: "ue", 0xC4: "Ae", 0xD6: "Oe", 0xDC: "Ue"}
        )
    ),
    "numbers in digits": _always(_digits(_NUMBERS)),
    "numbers in words": _always(_digits(_WORDS)),
    "no article": _always(lambda text: re.sub(r"(?<!^)\bthe ", "", text)),
    "greeting and thanks": _always(lambda text: f"Hello, {text} Thank you!"),
    "two letters exchanged": typo,
}
