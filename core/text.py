"""Text -> words: Unicode normalisation and word boundaries, for training and service.

In order: typographic quotes and dashes made plain, compatibility decomposition (NFKD), accents and invisible
characters dropped, recomposition, full case folding, then one regular expression. Contractions follow the Penn
Treebank ("don't" -> "do", "n't"), as the tokenised corpora and GloVe do. Case *folding* rather than lower-casing,
because it does not depend on context (Greek final sigma) and unfolds sharp s.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

PLAIN = {
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u00b4": "'", "\u02bc": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u2033": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-", "\u2212": "-",
    "\u2044": "/",
}  # fmt: skip

_RAISED = str.maketrans(
    "0123456789+-\u2212", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207b"
)
# Characters within words that nobody sees: soft hyphens, spaces without width, marks of direction and order.
_UNSEEN = dict.fromkeys((0xAD, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF))
# Marks (accents, variation selectors) and invisible characters, also surrogates. Unassigned characters stay, because
# new emoji are unassigned in older versions of Python, and all versions must give the same words.
_DROPPED = frozenset({"Mn", "Me", "Cf", "Cs", "Co"})
# Marks that make another letter: Japanese ka and ga differ as k and g.
_VOICING = "\u3099\u309a"
_PART = 1000  # characters read at once
_FEW = 100  # of a text that may become much longer
_MAX_REMEMBERED = 32_768  # cached characters: more than any language uses
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_NEGATION = re.compile(r"n't(?![^\W_])")
# Scripts written without spaces: every character is a word.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")

_WORD = re.compile(
    r"n't(?![^\W_])"  # the negation of "do n't"
    r"|'(?:s|re|ve|ll|d|m)(?![^\W_])"  # clitics
    r"|\d[\d.,]*\d(?![^\W_])"  # 1,000.50
    r"|[^\W_]+"  # letters and digits
    r"|[^\w\s]|_"  # any other visible character alone
)
# The same for ASCII, faster: common words are the first alternative, as far as no other begins like them.
_ASCII_WORD = re.compile(
    r"[a-mo-z][a-z0-9]*"
    r"|\d[\d.,]*\d(?![a-z0-9])"
    r"|n't(?![a-z0-9])"
    r"|[a-z0-9]+"
    r"|'(?:s|re|ve|ll|d|m)(?![a-z0-9])"
    r"|[^\w\s\x1c-\x1f]|_",  # \x1c-\x1f are white space, but not with re.ASCII
    re.ASCII,
)
# Marks that are words of their own wherever white space follows: what they end is then a chunk by itself.
_ENDS_CHUNKS = (". ", ", ", "? ", "! ")
END = "\0"  # ends each of several texts that are read in one go
# Long runs that may consist of marks, none of which matches \w.
_LONGEST_RUN = 32  # of marks: unicodedata sorts longer ones in noticeable time
_LONG_RUN = re.compile(rf"[^\w\s]{{{_LONGEST_RUN},}}")
# Up to the last end of a word: after white space, or a character that is a word by itself.
_TO_LAST_END = re.compile(r".*(?:[^\w'.,]|_)", re.DOTALL)
_VOWELS_AND_FINALS = range(0x1160, 0x1200)  # of Hangul syllables; they combine with the preceding consonant


class _Table(dict[int, int | str | None]):
    """A table for `str.translate`, filled by a rule on first use of each character."""

    def __init__(self, rule: Callable[[str], str | None]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> int | str | None:
        ruled = self._rule(chr(code))
        found = code if ruled == chr(code) else ruled
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        self[code] = found
        return found


def seen(text: str) -> str:
    """A text without what stands unseen within its words."""
    return text if text.isascii() else text.translate(_UNSEEN)


def raised(text: str) -> str:
    """Digits and signs as raised ones."""
    return text.translate(_RAISED)


def _before_decomposition(character: str) -> str | None:
    """Replaces quotes and drops most marks.

    Quotes first, because decomposition turns an acute accent typed as an apostrophe into a space and an accent. Marks
    already here, because decomposition sorts consecutive marks in quadratic time.
    """
    if character in PLAIN:
        return PLAIN[character]
    decomposed = unicodedata.normalize("NFKD", character)
    if not unicodedata.combining(decomposed[0]):
        return character
    return decomposed if _is_kept(decomposed[0]) else None


def _before_recomposition(character: str) -> str | None:
    if unicodedata.category(character) == "Cc":
        return " "
    return character if _is_kept(character) else None


def _at_last(character: str) -> str | None:
    """Drops marks that did not combine, such as a voicing mark after a Latin letter."""
    if character in PLAIN:
        return PLAIN[character]
    return None if unicodedata.category(character) == "Mn" else character


def _is_kept(character: str) -> bool:
    return unicodedata.category(character) not in _DROPPED or character in _VOICING


_BEFORE_DECOMPOSITION = _Table(_before_decomposition)
_BEFORE_RECOMPOSITION = _Table(_before_recomposition)
_AT_LAST = _Table(_at_last)


def normalise(text: str) -> str:
    """Fold text to the form of the vocabulary; idempotent, never raises, may return only white space."""
    if text.isascii():
        return (text if text.isprintable() else _ASCII_CONTROLS.sub(" ", text)).lower()
    decomposed = unicodedata.normalize("NFKD", _in_order(text.translate(_BEFORE_DECOMPOSITION)))
    kept = decomposed.translate(_BEFORE_RECOMPOSITION)
    return unicodedata.normalize("NFC", _in_order(kept)).casefold().translate(_AT_LAST)


def normalise_within(text: str, most: int) -> tuple[str, str]:
    """Normalised as far as that has about so many characters, in parts; and what is left of the text, as it is."""
    if text.isascii() or len(text) <= _FEW:
        return normalise(text), ""
    parts: list[str] = []
    start, room = 0, most
    while start < len(text) and room > 0:
        end = _boundary(text, start + _FEW)
        parts.append(normalise(text[start:end]))
        start, room = end, room - len(parts[-1])
    return "".join(parts), text[start:]


def _in_order(text: str) -> str:
    """Sort long runs of marks in canonical order (Unicode, section 3.11), in n log n time."""
    return _LONG_RUN.sub(_sort_marks, text) if len(text) > _LONGEST_RUN else text


def _sort_marks(run: re.Match[str]) -> str:
    rows = groupby(run[0], lambda character: unicodedata.combining(character) > 0)
    return "".join("".join(sorted(row, key=unicodedata.combining) if are_marks else row) for are_marks, row in rows)


def split_words(text: str) -> list[str]:
    """Words, clitics, numbers and punctuation marks of a sentence, normalised, in order."""
    return words_of_chunk(_spaced(normalise(text)))


def chunks_and_ends(texts: Sequence[str]) -> list[str] | None:
    """What white space separates in several texts, each text's chunks followed by `END`, in one go.

    `words_of_chunk` of each chunk are the words of `split_words`, in order. A chunk of letters and digits is one word.
    None unless all texts are short, and of printable ASCII, which needs no normalisation but for its case.
    """
    if max(map(len, texts)) > _PART or not (joined := "".join(texts)).isascii() or not joined.isprintable():
        return None
    joined = f" {END} ".join((*texts, "")).lower()
    for mark in _ENDS_CHUNKS:
        joined = joined.replace(mark, f" {mark}")
    return joined.split()


def words_in_parts(text: str) -> Iterator[list[str]]:
    """The words of `split_words` in lists. Reads the text only as far as lists are requested, and some `_PART`
    characters more. No word is cut.
    """
    if len(text) <= _PART:
        yield split_words(text)
        return
    held: list[str] = []  # beginning of a word that may continue
    start = 0
    while start < len(text):
        end = _boundary(text, start + _PART)
        folded = _spaced(normalise(text[start:end]))
        if (ended := _TO_LAST_END.match(folded)) is not None:
            words = words_of_chunk("".join((*held, ended[0])))
            yield from (words[i : i + _PART] for i in range(0, len(words), _PART))
            held, folded = [], folded[ended.end() :]
        held.append(folded)
        start = end
    yield words_of_chunk("".join(held))


def _boundary(text: str, start: int) -> int:
    """The first position from `start` on where a text can be cut without changing its normalisation."""
    return next((place for place in range(start, len(text)) if _begins_anew(text[place])), len(text))


@lru_cache(maxsize=4096)
def _begins_anew(character: str) -> bool:
    """Whether it is kept, and neither combines nor is sorted with preceding characters."""
    first = unicodedata.normalize("NFKD", character)[0]
    category = unicodedata.category(first)
    return (category[0] in "LNPSZ" or category in ("Cc", "Cn")) and ord(first) not in _VOWELS_AND_FINALS


def _spaced(folded: str) -> str:
    """With spaces around the characters of scripts written without them."""
    return folded if folded.isascii() else _UNSPACED.sub(r" \1 ", folded)


def words_of_chunk(folded: str) -> list[str]:
    """The words of a chunk of `chunks_and_ends`, or of more of a normalised text."""
    if "n't" in folded:
        folded = _NEGATION.sub(" n't", folded)
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)
