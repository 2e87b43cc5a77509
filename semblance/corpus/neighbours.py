"""Which vectors are near: exactly while there are few, through an inverted file of faiss beyond.

An inverted file (Jegou et al., "Product Quantization for Nearest Neighbor Search", 2011; here without quantisation of
the vectors) puts each vector into the cell of its nearest centre and searches the nearest cells of a query only. What
it misses is measured on a sample of queries.

Shapes: N vectors, Q queries, D dimensions, K neighbours.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semblance.corpus.vectors import Matrix
from semblance.extras import needs

with needs("searching a file", extra="search"):
    import faiss

EXACT_ROWS = 100_000  # up to here every pair is compared
QUERIES_AT_ONCE = 1024
PROBES = 24  # cells searched of each query
ROWS_OF_A_CENTRE = 48  # from which its place is learnt
SAMPLE = 500  # queries on which the recall is measured
SEED = 1
Indices = npt.NDArray[np.int64]


class Near(NamedTuple):
    """Pairs of a query and a vector.

    Attributes:
        queries: int64 [n], positions among the queries.
        rows: int64 [n], positions among the vectors.
        cosines: float32 [n].
    """

    queries: Indices
    rows: Indices
    cosines: Matrix

    def only(self, kept: npt.NDArray[np.bool_] | Indices) -> "Near":
        """Some of the pairs, by a mask or by their places."""
        return Near(self.queries[kept], self.rows[kept], self.cosines[kept])


class Neighbours:
    """An index over unit vectors."""

    def __init__(self, vectors: Matrix, *, exact: bool | None = None) -> None:
        """Index vectors [N, D].

        Args:
            vectors: of length 1.
            exact: compare all; None: up to 100,000 vectors.
        """
        rows, dim = vectors.shape
        self.exact = rows <= EXACT_ROWS if exact is None else exact
        self._vectors = vectors
        flat = faiss.IndexFlatIP(dim)
        if self.exact:
            self._index: Any = flat
        else:
            cells = max(1, round(2 * rows**0.5))
            # Half precision: a cosine moves by less than 0.0005, and is computed anew from the vectors.
            self._index = faiss.IndexIVFScalarQuantizer(
                flat, dim, cells, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
            )
            self._index.nprobe = min(PROBES, cells)
            self._index.cp.seed = SEED
            self._index.cp.min_points_per_centroid = 1
            chosen = np.random.default_rng(SEED).choice(rows, min(rows, ROWS_OF_A_CENTRE * cells), replace=False)
            self._index.train(vectors[np.sort(chosen)])
        self._index.add(vectors)

    def above(self, queries: Matrix, least: float) -> Iterator[Near]:
        """Every vector found whose cosine with a query is at least `least`, for some queries [Q, D] at a time."""
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            part = queries[start : start + QUERIES_AT_ONCE]
            slack = 0.0 if self.exact else 0.001
            limits, cosines, rows = self._index.range_search(
                part, np.nextafter(np.float32(least - slack), np.float32(-2))
            )
            counts = np.diff(limits).astype(np.int64)  # faiss: unsigned
            places = np.repeat(np.arange(len(part), dtype=np.int64), counts)
            if not self.exact:
                cosines = np.einsum("nd,nd->n", part[places], self._vectors[rows])
            kept = cosines >= least
            yield Near(places[kept] + start, rows[kept], cosines[kept])

    def best(self, queries: Matrix, count: int) -> Iterator[tuple[Indices, Matrix]]:
        """For some queries [Q, D] at a time the rows [Q, K] and cosines [Q, K] of the nearest, best first.

        Where fewer are found the rest are row -1. Among equal cosines the earlier row comes first.
        """
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            part = queries[start : start + QUERIES_AT_ONCE]
            _, rows = self._index.search(part, min(count, len(self._vectors)))
            cosines = np.einsum("qd,qkd->qk", part, self._vectors[np.maximum(rows, 0)])
            cosines[rows < 0] = -2.0
            order = np.lexsort((rows, -cosines), axis=1)
            yield np.take_along_axis(rows, order, 1), np.take_along_axis(cosines, order, 1)

    def recall_above(self, least: float) -> float:
        """The share found of the pairs of indexed vectors with at least this cosine, on a sample of the vectors.

        It is 1 where all are compared, or the sample has no such pair.
        """
        if self.exact:
            return 1.0
        chosen = self._sample(len(self._vectors))
        queries = self._vectors[chosen]
        whole = Neighbours(self._vectors, exact=True)
        there, found = (
            sum(int((near.rows != chosen[near.queries]).sum()) for near in index.above(queries, least))
            for index in (whole, self)
        )
        return found / there if there else 1.0

    def recall_of_best(self, queries: Matrix, count: int) -> float:
        """The share found of the `count` nearest to a query, on a sample of queries [Q, D]; 1 where all are compared.

        Vectors that are equally near count as missed where others were found in their place.
        """
        if self.exact:
            return 1.0
        sample = queries[self._sample(len(queries))]
        whole = Neighbours(self._vectors, exact=True)
        right, found = (np.concatenate([rows for rows, _ in index.best(sample, count)]) for index in (whole, self))
        return sum(len(np.intersect1d(a, b)) for a, b in zip(right, found, strict=True)) / right.size

    @staticmethod
    def _sample(size: int) -> Indices:
        return np.sort(np.random.default_rng(SEED).choice(size, min(SAMPLE, size), replace=False))
