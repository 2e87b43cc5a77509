"""Clusters: texts that are joined by near pairs, directly or through others (single linkage)."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from semblance.corpus.neighbours import Near
from semblance.extras import needs

with needs("searching a file", extra="search"):
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

PAIRS_AT_ONCE = 4_000_000  # bounds memory: pairs are many where the threshold is low


def cluster(near: Iterable[Near], size: int) -> npt.NDArray[np.int64]:
    """For each of `size` vectors the first one of its cluster, int64 [size]; pairs may come in any order."""
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


def _join(first: npt.NDArray[np.int64], near: list[Near]) -> npt.NDArray[np.int64]:
    """Join clusters by further pairs."""
    size = len(first)
    a = np.concatenate([np.arange(size), *(pairs.queries for pairs in near)])
    b = np.concatenate([first, *(pairs.rows for pairs in near)])
    _, labels = connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(size, size)), directed=False)
    _, firsts = np.unique(labels, return_index=True)  # of each label, in their order
    found: npt.NDArray[np.int64] = firsts[labels].astype(np.int64)
    return found
