"""Attributes of which a thing has one, and negations: "navy, L" is not "charcoal, L", "dimmable" not "not dimmable".

The table is of everyday English and small on purpose: a word that is absent from it decides nothing.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from core.quantities import Difference, quantities

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]*)?")
_BY_THEIR_NAME: dict[str, tuple[str, ...]] = {  # attribute -> words each of which is a value
    "colour": (
        *("black", "white", "red", "green", "yellow", "orange", "purple", "pink", "brown", "beige", "silver"),
        *("violet", "grey", "blue"),
    ),
    "material": (
        *("oak", "beech", "pine", "walnut", "steel", "zinc", "brass", "copper", "aluminium", "plastic", "leather"),
        *("cotton", "wool", "linen", "silk", "polyester", "glass"),
    ),
    "weekday": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "month": (
        *("january", "february", "march", "april", "june", "july", "august", "september", "october", "november"),
        "december",
    ),
    "point of the compass": ("north", "south", "east", "west"),
    "side": ("left", "right", "front", "rear"),
    "height": ("upper", "lower"),
    "time": ("before", "after"),
    "condition": ("new", "used", "refurbished"),
    "number of beds": ("single", "double", "twin"),
}
_ATTRIBUTES: dict[str, dict[str, str]] = {  # attribute -> a word and the value that it stands for
    **{attribute: dict(zip(words, words, strict=True)) for attribute, words in _BY_THEIR_NAME.items()},
    "shade": {"gray": "grey", "charcoal": "grey", "anthracite": "grey", "navy": "blue"},
    "for whom": {
        **dict.fromkeys(("men", "men's", "mens"), "men"),
        **dict.fromkeys(("women", "women's", "womens", "ladies", "ladies'"), "women"),
        **dict.fromkeys(("children", "children's", "kids", "kids'"), "children"),
    },
    "quarter": {"northern": "north", "southern": "south", "eastern": "east", "western": "west"},
    "temperature": {"warm": "warm", "hot": "warm", "cool": "cool", "cold": "cool"},
    "duty": {"must": "must", "shall": "must", "can": "may", "may": "may", "might": "may", "could": "may"},
    "maker": {"original": "original", "genuine": "original", "compatible": "compatible", "generic": "compatible"},
}
_SAME_KIND = {"shade": "colour", "quarter": "point of the compass"}
_VALUES = {
    word: (_SAME_KIND.get(attribute, attribute), value)
    for attribute, words in _ATTRIBUTES.items()
    for word, value in words.items()
}
_MAY_OF_A_DATE = re.compile(r"(?<=[a-z\d,] )May\b|\bMay(?= \d)")  # elsewhere it is the verb
_LETTER_SIZE = re.compile(r"(?<![\w.&'-])(?<!\d )(?:XXS|XS|S|M|L|XL|XXL|XXXL)(?![\w.&'-])")
_SWITCHED = re.compile(r"\b(?:turn|switch|power|log|sign)\w*(?: \w+){0,3}? (on|off|in|out|up|down)\b", re.IGNORECASE)
_NEGATION = re.compile(r"(?:not|no|never|without|cannot|\w+n't)$")
# Between a negation and its word.
_PASSED_OVER = frozenset(("a", "an", "the", "be", "been", "being", "any", "it", "to", "do", "longer", "more", "very"))

Said = tuple[str, float | str]  # a kind of fact, and its value


def attributes(text: str) -> dict[Said, str]:
    """What a text says of each attribute, and how it is written there."""
    found: dict[Said, str] = {}
    for match in _MAY_OF_A_DATE.finditer(text):
        found["month", "may"] = match[0]
    for match in _LETTER_SIZE.finditer(text):
        found["size", match[0]] = match[0]
    for match in _SWITCHED.finditer(text):
        found["switched", match[1].lower()] = match[1]
    rest = _MAY_OF_A_DATE.sub(" ", text)
    for word in words_of(rest):
        if word in _VALUES:
            found[_VALUES[word]] = word
    return found


LEAST_STEM = 3  # letters


def stem(word: str) -> str:
    """A word without the ending of a verb or of a plural: `charge`, `charges`, `charged` and `charging` have one."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= LEAST_STEM:
            return word.removesuffix(ending)
    return word


def negated(words: Collection[str]) -> frozenset[str]:
    """Of the words of a text those that come right after a negation: of "does not leak" `leak`."""
    found: set[str] = set()
    after = False
    for word in words:
        if _NEGATION.match(word):
            after = True
        elif after and word not in _PASSED_OVER:
            found.add(word)
            after = False
    return frozenset(found)


class Facts(NamedTuple):
    """What a text says that another one must not contradict.

    Attributes:
        said: each kind of fact with its value, and how it is written.
        negated: words that come after a negation.
        affirmed: words that do not.
    """

    said: dict[Said, str]
    negated: frozenset[str]
    affirmed: frozenset[str]


def facts(text: str) -> Facts:
    """The facts of a text."""
    words = words_of(text)
    below = negated(words)
    return Facts(quantities(text) | attributes(text), below, frozenset(words) - below)


def difference(a: Facts, b: Facts) -> Difference | None:
    """The first kind of which both texts have some and each has one that the other has not; None: they agree.

    A word that one text negates and the other affirms is a difference too.
    """
    for kind in dict.fromkeys(kind for kind, _ in a.said):
        own, other = ({key for key in side.said if key[0] == kind} for side in (a, b))
        if other and own - other and other - own:
            return Difference(
                min((a.said[key] for key in own - other), key=_order),
                min((b.said[key] for key in other - own), key=_order),
            )
    if words := _denied(a, b):
        return Difference(f"not {words[0]}", words[1])
    if words := _denied(b, a):
        return Difference(words[1], f"not {words[0]}")
    return None


def _denied(a: Facts, b: Facts) -> tuple[str, str] | None:
    """A word that a negates, and how b affirms it, in whatever form; None: there is none."""
    affirmed = {stem(word): word for word in sorted(b.affirmed)}
    also = {stem(word) for word in b.negated}
    found = ((word, affirmed[stem(word)]) for word in sorted(a.negated) if stem(word) in affirmed.keys() - also)
    return next(found, None)


def _order(text: str) -> tuple[int, str]:
    return len(text), text


def words_of(text: str) -> list[str]:
    """The words and numbers of a text in lower case, apostrophes straight."""
    return _WORD.findall(text.casefold().replace("\u2019", "'"))
