"""The words of a text in one spelling, so that texts which differ in nothing else are known to be one.

What differs only in case, punctuation, spaces, accents, an apostrophe, `ss` and sharp s, `ae` and a-umlaut, number
words, the spelling of an amount (`core.alignment`), a contraction, "the" or "please" says the same; no model needs to
be asked. Marks that mean something stay: a sign or a point of a number, a fraction, `%`, `#`, `+`, currencies, emoji.
"""

import re
import unicodedata
from collections.abc import Sequence

from core.alignment import in_one_spelling
from core.attributes import WEEKDAYS
from core.numerals import APOSTROPHES, Tokens
from core.text import normalise_within
from core.units import LARGE, SMALL, word_set

_UMLAUTS = {
    0xE4: "ae", 0xF6: "oe", 0xFC: "ue", 0xC4: "Ae", 0xD6: "Oe", 0xDC: "Ue", 0xE6: "ae", 0xC6: "Ae", 0xF8: "oe",
    0xD8: "Oe", 0x153: "oe", 0x152: "Oe",
}  # fmt: skip
_APART = re.compile("(?<=[aouAOU])\u0308")  # an umlaut whose dots are a character of their own
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['`](?=[^\W\d_])|(?<=s)'(?= )|(?<=\be)[- ](?=mail)")
# Exponents, and fractions after a whole number: NFKC would make 106 of ten to the sixth, 11/2 of one and a half.
_EXPONENT = re.compile("(?<=\\d)[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
_FRACTION = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215f\u2189])")
_MINUS_AFTER = re.compile(r"(?<![^\W_])(ab|[^\W\d_])-(?![\w-])", re.IGNORECASE)
_UNEQUAL = {0x2260: "!="}  # NFKD would drop the stroke
_TOKEN = re.compile(
    r"(?:(?<![^\s(\[=:])[-+](?=\.?\d))?(?:(?<![^\W_])\.)?\d+(?:[.,/:*]\d+)*(?![^\W_])"  # 1,000.50; -5, but of 3-5 a 5
    r"|(?<![^\s(\[=:])-[$\u20ac\u00a3\u00a5](?=\d)"
    r"|[^\W_]+"
    r"|!="
    r"|[^\w\s]"
)
_MEANT = frozenset("+#%@=<>$~^|\u2030\u2032\u2212")  # other symbols by their category
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_LETTERED = re.compile(r"(\d+)([a-z])$")  # 12b is 12 b
EXPANDED, _EXPANDED_FEW = 2, 100  # times as long, and a few characters, a text may become; one character may give 18
_DAYS = frozenset((*WEEKDAYS, *(day[:3] for day in WEEKDAYS)))
# Without their apostrophe, which is often left out; not those that are other words then (were, well, ill).
_CONTRACTED = {
    f"{word}{short}": f"{word} {long}"
    for short, long, words in (
        ("nt", "not", "are could did do does had has have is must need should was were would"),
        ("s", "is", "here how it that there what where who"),
        ("ve", "have", "i they we you"),
        ("ll", "will", "it that they you"),
        ("re", "are", "they you"),
        ("m", "am", "i"),
    )
    for word in word_set(words)
} | {"cant": "can not", "cannot": "can not", "wont": "will not"}
_NUMBERED = re.compile(r"\b(?:no\.|nos\.|nr\.?|number)\s*#?(?=\d)", re.IGNORECASE)
_SAY_NOTHING = frozenset(("the", "please"))


def same_words(text: str) -> str:
    """The words of a text in one spelling, a space between each two; what has no words keeps its marks."""
    text = in_one_spelling(" ".join(text.split()))
    written = _FRACTION.sub(" ", _EXPONENT.sub(r"^\g<0>", _APART.sub("e", text.translate(_UMLAUTS | _UNEQUAL))))
    normalised, rest = normalise_within(written, EXPANDED * len(written) + _EXPANDED_FEW)
    plain = _MINUS_AFTER.sub("\\1 \u2212", normalised.replace("\u2044", "/").replace("\u2215", "/"))
    plain = _with_digits(_NUMBERED.sub("#", APOSTROPHES.sub(",", plain)))
    # One by one: to find all those of a long text at once would keep other threads waiting.
    tokens = [each[0] for each in _TOKEN.finditer(_APOSTROPHE.sub("", plain))]
    words = [_spelt(token) for token in _with_ranges(tokens) if _is_meant(token) and token not in _SAY_NOTHING]
    words = [_CONTRACTED.get(word, word) for word in words]
    return " ".join((words or tokens) + ([rest] if rest else []))


def _with_digits(text: str) -> str:
    """With digits for number words: two thousand five hundred and two is 2502, 2 million 2000000, but two three 2 3."""
    tokens = Tokens(text)
    parts, after, i = [], 0, 0
    while i < len(tokens.words):
        word = tokens.words[i]
        written = word in SMALL or (word[0].isdecimal() and tokens.word(i + 1) in LARGE)
        values, end = (tokens.number(i) if written else None) or ([SMALL["one"]] if word == "one" else [], i + 1)
        if len(values) == 1 and values[0].denominator == 1:
            parts += [text[after : tokens.starts[i]], str(values[0])]
            after = tokens.ends[end - 1]
        i = end
    return "".join((*parts, text[after:]))


def _with_ranges(tokens: Sequence[str]) -> Sequence[str]:
    """With a word for the dash between two numbers or two days: 3-5 is 3 to 5, not 3 and 5; 030-123-456 is neither."""
    found = list(tokens)
    for i in range(1, len(tokens) - 1):
        ends = tokens[i - 1], tokens[i + 1]
        is_range = all(map(str.isdecimal, ends)) or _DAYS.issuperset(ends)
        if tokens[i] == "-" and is_range and "-" not in (*tokens[max(0, i - 2) : i], *tokens[i + 1 : i + 3]):
            found[i] = "to"
    return found


def _is_meant(token: str) -> bool:
    mark = token[-1]
    return mark.isalnum() or mark == "&" or mark in _MEANT or unicodedata.category(mark) in ("So", "Sc", "Sm")


def _spelt(token: str) -> str:
    if token == "&":
        return "and"
    if token[0] == ".":
        return f"0{token}" if token[1:].isdigit() else token
    if (lettered := _LETTERED.match(token)) is not None:
        return f"{lettered[1]} {lettered[2]}"
    plain = token.replace(",", "") if _THOUSANDS.match(token.lstrip("-+")) else token
    return f"minus {plain[1:]}" if plain[0] == "-" else plain
