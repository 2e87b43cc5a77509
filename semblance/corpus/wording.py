"""How alike two texts are as sequences of words, which tells more beside a cosine than it does alone.

Vectors that are near although the words differ speak for two people's words of the same; nearly the same words with one
of them replaced, or in another order, speak for another thing.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]*)?")
REPLACED = 2  # words at most, on each side, of a replacement that is looked at
MISSPELT = 0.8  # share of letters from which on two words are one, misspelt
# A text with one of these is a sentence, or says a direction: the order of its words means something.
_ORDERED = frozenset(("to", "from", "for", "than", "instead", "not", "and", "but", "before", "after", "on", "although"))


class Wording(NamedTuple):
    """What two texts' sequences of words have in common.

    Attributes:
        alike: 0..1, the share of words that are the same in the same order (Ratcliff and Metzener 1988).
        edited: the texts are the same but for one or two words in one place, which are spelt otherwise; or they have
            the same words in another order, in a text where the order means something.
    """

    alike: float
    edited: bool


def words_of(text: str) -> list[str]:
    """The words and numbers of a text in lower case, apostrophes straight."""
    return _WORD.findall(text.casefold().replace("\u2019", "'"))


def wording(a: list[str], b: list[str]) -> Wording:
    """Compare the words of two texts."""
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    edited = a != b and len(a) == len(b) and not _ORDERED.isdisjoint(a) and sorted(a) == sorted(b)
    if len(changes) == 1 and changes[0][0] == "replace":
        _, start, stop, start_b, stop_b = changes[0]
        short = stop - start <= REPLACED and stop_b - start_b <= REPLACED
        single = stop - start == stop_b - start_b == 1
        edited |= short and not (single and _same_word(a[start], b[start_b]))
    return Wording(matcher.ratio(), edited)


def wordings(texts: list[list[str]], pairs: Iterable[tuple[int, int]]) -> npt.NDArray[np.float64]:
    """Of pairs of texts, given by their words, alike and edited, [n, 2]."""
    found = np.array([wording(texts[a], texts[b]) for a, b in pairs], dtype=np.float64)
    return found.reshape(-1, 2)


def _same_word(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    if short.isdigit() or long.isdigit():
        return False
    return long.startswith(short) or SequenceMatcher(None, a, b, autojunk=False).ratio() >= MISSPELT
