"""Groups of texts by average linkage (Sokal and Michener 1958): a text joins a group that it is near to on average.

So a chain of near texts, each a little further from the first, does not become one group. Average linkage needs all
scores within a part of the file, so it runs within parts: texts that near pairs connect, directly or through others.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from semblance.corpus.guard import Guard
from semblance.corpus.neighbours import Indices, Near, Neighbours
from semblance.corpus.vectors import Matrix
from semblance.extras import needs

with needs("searching a file", extra="search"):
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial.distance import squareform

PAIRS_AT_ONCE = 4_000_000  # bounds memory: pairs are many where the threshold is low
MOST = 500  # texts of a part: of more, only nearer pairs connect


APART = np.float32(-1e6)  # the score of two texts that may never be in one group


class PairScores(Protocol):
    """Scores of pairs of a file's texts, the higher the more alike, at most 1; `APART` where a fact differs."""

    def at_least(self, members: Indices | None, least: float) -> Iterable[Near]:
        """Pairs of some texts (None: of all) with at least this score."""

    def matrix(self, members: Indices) -> Matrix:
        """All scores of m texts, [m, m]."""


class CosineScores:
    """A pair's score is the cosine of its embeddings, unless the guard keeps the two apart."""

    def __init__(self, near: Neighbours, vectors: Matrix, guard: Guard | None) -> None:
        """Vectors [N, D] of length 1, and an index over them."""
        self._near, self._vectors, self._guard = near, vectors, guard

    def at_least(self, members: Indices | None, least: float) -> Iterable[Near]:
        """Pairs with at least this score, as in `PairScores.at_least`."""
        if members is None:
            found = self._near.above(self._vectors, least)
        else:
            of_part = Neighbours(self._vectors[members], exact=True).above(self._vectors[members], least)
            found = (Near(members[pairs.queries], members[pairs.rows], pairs.cosines) for pairs in of_part)
        return found if self._guard is None else self._guard.agreeing(found)

    def matrix(self, members: Indices) -> Matrix:
        """All scores of m texts, as in `PairScores.matrix`."""
        scores: Matrix = np.minimum(self._vectors[members] @ self._vectors[members].T, np.float32(1))
        if self._guard is not None:
            a, b = np.triu_indices(len(members), 1)
            apart = ~self._guard.agree(Near(members[a], members[b], scores[a, b]))
            scores[a[apart], b[apart]] = scores[b[apart], a[apart]] = APART
        return scores


class ListedScores:
    """Scores of listed pairs; any other pair has the score 0."""

    def __init__(self, pairs: Near, scores: npt.NDArray[np.float64], size: int) -> None:
        """Of n pairs of `size` texts, each pair once, the scores [n]."""
        self._pairs, self._scores = pairs, scores.astype(np.float32)
        half = csr_array((self._scores, (pairs.queries, pairs.rows)), shape=(size, size))
        self._matrix = (half + half.T).tocsr()

    def at_least(self, members: Indices | None, least: float) -> Iterable[Near]:
        """Pairs with at least this score, as in `PairScores.at_least`."""
        return [listed_at_least(self._pairs, self._scores, members, least)]

    def matrix(self, members: Indices) -> Matrix:
        """All scores of m texts, as in `PairScores.matrix`."""
        found: Matrix = self._matrix[members][:, members].toarray()
        np.fill_diagonal(found, 1)
        return found


def listed_at_least(pairs: Near, scores: npt.NDArray[Any], members: Indices | None, least: float) -> Near:
    """Those of n pairs of some texts (None: of all) whose score [n] is at least this."""
    kept = scores >= least
    if members is not None:
        kept &= np.isin(pairs.queries, members) & np.isin(pairs.rows, members)
    return pairs.only(kept)


def group(scores: PairScores, size: int, least: float) -> npt.NDArray[np.int64]:
    """For each of `size` texts the first one of its group, int64 [size].

    Two groups are one if the mean score of their pairs is at least `least`.
    """
    first = connected(scores.at_least(None, least), size)
    for members in _parts(first):
        _divide(scores, members, least, first)
    return first


def connected(near: Iterable[Near], size: int) -> npt.NDArray[np.int64]:
    """For each of `size` texts the first one that pairs connect it with, int64 [size]; pairs may come in any order."""
    first = np.arange(size, dtype=np.int64)
    waiting: list[Near] = []
    count = 0
    for pairs in near:
        waiting.append(pairs)
        count += len(pairs.rows)
        if count >= PAIRS_AT_ONCE:
            first = _join(first, waiting)
            waiting, count = [], 0
    return _join(first, waiting)


def _divide(scores: PairScores, members: Indices, least: float, first: npt.NDArray[np.int64]) -> None:
    """Set the first text of each group of a part."""
    if len(members) < 3:
        return  # two connected texts are near
    if len(members) <= MOST:
        distances = squareform(np.clip(1 - scores.matrix(members), 0, None), checks=False)
        tree = linkage(distances, "average")
        _, labels = np.unique(fcluster(tree, 1 - least + 1e-7, "distance"), return_inverse=True)
        for label in range(labels.max() + 1):
            own = members[labels == label]
            first[own] = own[0]
        return
    higher = least + (1 - least) / 4
    if 1 - higher < 1e-4:
        return  # as good as equal, all of them
    first[members] = members
    near = (
        Near(np.searchsorted(members, pairs.queries), np.searchsorted(members, pairs.rows), pairs.cosines)
        for pairs in scores.at_least(members, higher)  # members rise
    )
    of_part = connected(near, len(members))
    first[members] = members[of_part]
    for part in _parts(of_part):
        _divide(scores, members[part], higher if len(part) > MOST else least, first)


def _parts(first: npt.NDArray[np.int64]) -> Iterator[Indices]:
    """The members of each part of two texts or more, rising."""
    order = np.argsort(first, kind="stable")
    starts = np.flatnonzero(np.diff(first[order], prepend=-1))
    for members in np.split(order, starts[1:]):
        if len(members) > 1:
            yield members


def _join(first: npt.NDArray[np.int64], near: list[Near]) -> npt.NDArray[np.int64]:
    """Connect parts by further pairs."""
    size = len(first)
    a = np.concatenate([np.arange(size), *(pairs.queries for pairs in near)])
    b = np.concatenate([first, *(pairs.rows for pairs in near)])
    _, labels = connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(size, size)), directed=False)
    _, firsts = np.unique(labels, return_index=True)  # of each label, in their order
    found: npt.NDArray[np.int64] = firsts[labels].astype(np.int64)
    return found
