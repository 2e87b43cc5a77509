"""Keeps texts apart that differ in a number, a code, a size or a unit, however near their embeddings are."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from contract.quantities import Difference, Said, difference, has_quantity, quantities
from semblance.corpus.neighbours import Near


class Guard:
    """Leaves out near pairs whose texts differ in a quantity, and remembers the nearest of each text.

    Attributes:
        nearest: int64 [n], for each text the nearest one that it was kept apart from; -1: none.
        cosines: float32 [n], with that one.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Read n texts."""
        said: dict[str, int] = {}
        self._of_text = np.empty(len(texts), dtype=np.int64)
        self._said: list[dict[Said, str]] = []
        for i, text in enumerate(texts):
            found = quantities(text) if has_quantity(text) else {}
            key = repr(sorted(map(repr, found)))
            self._of_text[i] = said.setdefault(key, len(said))
            if self._of_text[i] == len(self._said):
                self._said.append(found)
        self._known: dict[tuple[int, int], Difference | None] = {}
        self.nearest = np.full(len(texts), -1, dtype=np.int64)
        self.cosines = np.full(len(texts), -2.0, dtype=np.float32)

    def agreeing(self, near: Iterable[Near]) -> Iterator[Near]:
        """The pairs whose texts agree."""
        for pairs in near:
            kinds = np.stack([self._of_text[pairs.queries], self._of_text[pairs.rows]], axis=1)
            distinct, places = np.unique(kinds, axis=0, return_inverse=True)
            agree = np.array([self._between(int(a), int(b)) is None for a, b in distinct], dtype=bool)[places.ravel()]
            self._remember(pairs, ~agree)
            yield Near(pairs.queries[agree], pairs.rows[agree], pairs.cosines[agree])

    def why(self, text: int) -> Difference | None:
        """How a text differs from the nearest one that it was kept apart from."""
        other = int(self.nearest[text])
        return None if other < 0 else self._between(int(self._of_text[text]), int(self._of_text[other]))

    def _between(self, a: int, b: int) -> Difference | None:
        if (a, b) not in self._known:
            self._known[a, b] = None if a == b else difference(self._said[a], self._said[b])
        return self._known[a, b]

    def _remember(self, pairs: Near, apart: npt.NDArray[np.bool_]) -> None:
        for query, row, cosine in zip(pairs.queries[apart], pairs.rows[apart], pairs.cosines[apart], strict=True):
            for one, other in ((query, row), (row, query)):
                if cosine > self.cosines[one]:
                    self.nearest[one], self.cosines[one] = other, cosine
