"""Keeps texts apart that differ in a fact: a number, a code, a size, an attribute, a negation.

What both texts have is compared: a text that says more ("M6 x 20, 100 pieces") agrees with one that says less.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.quantities import Difference, quantities
from semblance.corpus.attributes import Said, attributes, negated, stem
from semblance.corpus.neighbours import Near
from semblance.corpus.wording import words_of


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


class Guard:
    """Leaves out near pairs whose texts differ in a fact, and remembers the nearest of each text.

    Attributes:
        nearest: int64 [n], for each text the nearest one that it was kept apart from; -1: none.
        cosines: float32 [n], with that one.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Read n texts; those that say the same share one record."""
        denied = {stem(word) for text in texts for word in negated(words_of(text))}
        kinds: dict[tuple[frozenset[Said], frozenset[str], frozenset[str]], int] = {}
        self._kind_of = np.empty(len(texts), dtype=np.int64)
        self._kinds: list[Facts] = []
        for i, each in enumerate(map(facts, texts)):
            affirmed = frozenset(w for w in each.affirmed if stem(w) in denied)  # no other word can be a difference
            key = (frozenset(each.said), each.negated, affirmed)
            self._kind_of[i] = kinds.setdefault(key, len(kinds))
            if self._kind_of[i] == len(self._kinds):
                self._kinds.append(each._replace(affirmed=affirmed))
        self._known: dict[tuple[int, int], Difference | None] = {}
        self.nearest = np.full(len(texts), -1, dtype=np.int64)
        self.cosines = np.full(len(texts), -2.0, dtype=np.float32)

    def agreeing(self, near: Iterable[Near]) -> Iterator[Near]:
        """The pairs whose texts agree."""
        for pairs in near:
            agree = self.agree(pairs)
            self._remember(pairs, ~agree)
            yield pairs.only(agree)

    def agree(self, pairs: Near) -> npt.NDArray[np.bool_]:
        """Which of n pairs agree, bool [n]."""
        kinds = np.stack([self._kind_of[pairs.queries], self._kind_of[pairs.rows]], axis=1)
        distinct, places = np.unique(kinds, axis=0, return_inverse=True)
        agree = np.array([self._between(int(a), int(b)) is None for a, b in distinct], dtype=bool)
        return agree[places.ravel()]

    def why(self, text: int) -> Difference | None:
        """How a text differs from the nearest one that it was kept apart from; None: it was kept apart from none."""
        other = int(self.nearest[text])
        return None if other < 0 else self._between(int(self._kind_of[text]), int(self._kind_of[other]))

    def _between(self, a: int, b: int) -> Difference | None:
        if (a, b) not in self._known:
            self._known[a, b] = None if a == b else difference(self._kinds[a], self._kinds[b])
        return self._known[a, b]

    def _remember(self, pairs: Near, apart: npt.NDArray[np.bool_]) -> None:
        for query, row, cosine in zip(pairs.queries[apart], pairs.rows[apart], pairs.cosines[apart], strict=True):
            for one, other in ((query, row), (row, query)):
                if cosine > self.cosines[one]:
                    self.nearest[one], self.cosines[one] = other, cosine


def _order(text: str) -> tuple[int, str]:
    return len(text), text
