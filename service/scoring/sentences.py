"""A text -> its sentences, by a plain rule (docs/client.md states it).

A sentence ends at a blank line, at the end of the text, and after a word that ends in . ! ? or … (closing quotes and
brackets aside) where the next word begins with a capital letter or a digit (opening ones aside). Common abbreviations,
and single letters with full stops, end none: "Dr.", "J.", "U.S."
"""

import re
from collections.abc import Iterator

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_CLOSING = "\"'\u201d\u2019\u00bb)]}"  # quotes, curly and angular ones too, and brackets
_OPENING = "\"'\u201c\u2018\u00ab([{"
_LETTERS = re.compile(r"(?:[A-Za-z]\.)+")  # each with its full stop
_ABBREVIATIONS = frozenset(
    f"{each}."
    for line in (
        "mr mrs ms dr prof rev gen col sgt capt lt st mt jr sr vs etc al fig figs vol pp eq sec dept inc ltd co",
        "corp approx jan feb mar apr jun jul aug sep sept oct nov dec",
    )
    for each in line.split()
)


def sentences_of(text: str) -> Iterator[str]:
    """The sentences in order, white space within each made single spaces; none of a text without a word."""
    for paragraph in _BLANK_LINE.split(text):
        words = paragraph.split()
        start = 0
        for i, word in enumerate(words, 1):
            if i == len(words) or (_ends(word) and _begins(words[i])):
                yield " ".join(words[start:i])
                start = i


def _ends(word: str) -> bool:
    core = word.rstrip(_CLOSING)
    if not core.endswith((".", "!", "?", "…")):
        return False
    bare = core.lstrip(_OPENING)
    return bare == "I." or not (bare.lower() in _ABBREVIATIONS or _LETTERS.fullmatch(bare))


def _begins(word: str) -> bool:
    first = word.lstrip(_OPENING)[:1]
    return first.isupper() or first.isdigit()
