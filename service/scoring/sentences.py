"""Where the sentences of a text begin and end.

A sentence ends at a blank line, at the end of the text, and after a word that ends in . ! ? or … (closing quotes,
brackets and Markdown's emphasis aside) where the next word begins with a capital letter, a digit or a sign of a
currency (opening ones, and < and >, aside). Common abbreviations, single letters with full stops, and the dots before a
price end none: "Dr.", "J.", "U.S.", "....."; a single letter behind a number is a unit, and may end one: "16 A."

Why no library: syntok, pysbd, nupunkt and sentencex found the boundaries no better when an earlier form of the rule was
compared with them, and this keeps positions.
"""

import re
from collections.abc import Iterator
from unicodedata import category

_WORD = re.compile(r"\S+")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_CLOSING = "\"'\u201d\u2019\u00bb)]}*_`"  # quotes, curly and angular ones too, brackets, and Markdown's emphasis
_OPENING = "\"'\u201c\u2018\u00ab([{*_`<>\u2264\u2265"
_LETTERS = re.compile(r"(?:[A-Za-z]\.)+")  # each with its full stop
_ABBREVIATIONS = frozenset(
    f"{each}."
    for line in (
        "mr mrs ms dr prof rev gen col sgt capt lt st mt jr sr vs etc al fig figs vol pp eq sec dept inc ltd co",
        "corp approx jan feb mar apr jun jul aug sep sept oct nov dec",
    )
    for each in line.split()
)


def spans_of(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Where each sentence of a part of a text begins, and the place after its end; none of a text without a word."""
    end = len(text) if end is None else end
    first: int | None = None  # of the sentence
    last = start  # end of the word before
    ends = numeric = False  # whether that word may end a sentence; whether it ends in a digit
    for match in _WORD.finditer(text, start, end):
        word = match[0]
        if first is None:
            first = match.start()
        elif (ends and begins(word)) or _BLANK_LINE.search(text, last, match.start()):
            yield first, last
            first = match.start()
        last, ends, numeric = match.end(), _ends(word, numeric), word[-1].isdigit()
    if first is not None:
        yield first, last


def _ends(word: str, after_number: bool) -> bool:
    core = word.rstrip(_CLOSING)
    bare = core.lstrip(_OPENING)
    if not core.endswith((".", "!", "?", "…")) or core.endswith("." * 5) or bare == ".":  # dots lead to a price
        return False
    if bare == "I." or (after_number and len(bare) == 2):
        return True
    return not (bare.lower() in _ABBREVIATIONS or _LETTERS.fullmatch(bare))


def begins(word: str) -> bool:
    """Whether a word, or a line, may begin a sentence."""
    first = word.lstrip(_OPENING + " ")[:1]
    return first.isupper() or first.isdigit() or (first != "" and category(first) == "Sc")
