"""Where the sentences of a text begin and end.

A sentence ends at a blank line, at the end of the text, and after a word that ends in . ! ? or … (closing quotes,
brackets and Markdown's emphasis aside) where the next word begins with a capital letter, a digit or a sign of a
currency (opening ones, and < and >, aside). Common abbreviations, single letters with full stops, and the dots before a
price end none: "Dr.", "J.", "U.S.", "....."; a single letter behind a number is a unit, and may end one: "16 A." Before
a number nor do words as "no." and "max.", unless they are behind one: "It takes 5 min. 3 people may go." Marks of
footnotes behind a full stop are no part of the word: "so.[1]".

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
_ENDS = (".", "!", "?", "\u2026")
_BEGIN_NOTES = "\xb9\xb2\xb3\u2070\u2074\u2075\u2076\u2077\u2078\u2079["
_NOTES = f"{_BEGIN_NOTES}0123456789]"
_LETTERS = re.compile(r"(?:[A-Za-z]\.)+")  # each with its full stop
_ABBREVIATIONS = frozenset(
    f"{each}."
    for line in (
        "mr mrs ms dr prof rev gen col sgt capt lt st mt jr sr vs etc al fig figs vol pp eq sec dept inc ltd co",
        "corp approx jan feb mar apr jun jul aug sep sept oct nov dec",
    )
    for each in line.split()
)
# A number follows: max. 5 guests, room no. 5; of days in capitals: Mon. 5 May, but not "He sat. 5 people came".
_BEFORE_A_NUMBER = frozenset(
    f"{each}."
    for line in (
        "no nos nr max min incl excl tel ext ph mob art para cl reg ref ch bldg apt rm flr qty avg temp est ca circa",
        "ver vers acct inv ord",
    )
    for each in line.split()
)
_DAYS = frozenset(f"{each}." for each in ["Mon", "Tue", "Tues", "Wed", "Thu", "Thur", "Thurs", "Fri", "Sat", "Sun"])


def spans_of(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Where each sentence of a part of a text begins, and the place after its end; none of a text without a word."""
    end = len(text) if end is None else end
    first: int | None = None  # of the sentence
    last = start  # end of the word before
    ends = numeric = counts = False  # whether that word may end a sentence; ends in a digit; comes before a number
    for match in _WORD.finditer(text, start, end):
        word = match[0]
        if first is None:
            first = match.start()
        elif (ends and begins(word, counts)) or _BLANK_LINE.search(text, last, match.start()):
            yield first, last
            first = match.start()
        bare = _without_notes(word).rstrip(_CLOSING).lstrip(_OPENING)
        counts = not numeric and (bare.lower() in _BEFORE_A_NUMBER or bare in _DAYS)
        last, ends, numeric = match.end(), _ends(bare, numeric), word[-1].isdigit()
    if first is not None:
        yield first, last


def _without_notes(word: str) -> str:
    """A word without the marks of footnotes behind its end."""
    said = word.rstrip(_NOTES)
    return said if said[-1:] in _ENDS and word[len(said) :][:1] in _BEGIN_NOTES else word


def _ends(bare: str, after_number: bool) -> bool:
    if not bare.endswith(_ENDS) or bare.endswith("." * 5) or bare == ".":  # dots lead to a price
        return False
    if bare == "I." or (after_number and len(bare) == 2):
        return True
    return not (bare.lower() in _ABBREVIATIONS or _LETTERS.fullmatch(bare))


def begins(word: str, in_letters: bool = False) -> bool:
    """Whether a word, or a line, may begin a sentence; `in_letters`: one with a number or a price may not."""
    first = word.lstrip(_OPENING + " ")[:1]
    if in_letters:
        return first.isupper()
    return first.isupper() or first.isdigit() or (first != "" and category(first) == "Sc")
