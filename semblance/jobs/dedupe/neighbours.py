"""The nearest texts of each text of a file: all compared while they are few, likely ones through faiss beyond.

An inverted file (Jegou et al., "Product Quantization for Nearest Neighbor Search", 2011; here without quantisation of
the vectors) puts each vector into the cell of its nearest centre and searches the nearest cells of a text only. What it
misses is measured on a sample of texts.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from core.duplicates import BLOCK, Indices, nearest_texts
from semblance.extras import needs
from semblance.jobs.dedupe.corpus import Matrix

EXACT_ROWS = 100_000  # up to here every pair is compared
PROBES = 24  # cells searched of each text
TRAINING_ROWS_PER_CENTROID = 48
SAMPLE = 500  # texts on which the recall is measured
SEED = 1
NO_NEIGHBOUR = -2.0  # below every cosine


class ApproximateNeighbours:
    """An inverted file over unit vectors."""

    def __init__(self, vectors: Matrix) -> None:
        """Index N vectors, [N, D], of length 1."""
        with needs("a file of so many texts", extra="search"):
            import faiss

        rows, dim = vectors.shape
        self._vectors = vectors
        cells = max(1, round(2 * rows**0.5))
        # Half precision: a cosine moves by less than 0.0005, and is computed anew from the vectors.
        flat = faiss.IndexFlatIP(dim)
        self._index: Any = faiss.IndexIVFScalarQuantizer(
            flat, dim, cells, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        self._index.nprobe = min(PROBES, cells)
        self._index.cp.seed = SEED
        self._index.cp.min_points_per_centroid = 1
        chosen = np.random.default_rng(SEED).choice(rows, min(rows, TRAINING_ROWS_PER_CENTROID * cells), replace=False)
        self._index.train(vectors[np.sort(chosen)])
        self._index.add(vectors)

    def nearest(self, count: int) -> Iterator[tuple[Indices, Matrix]]:
        """As `nearest_texts`; where fewer are found, the rest have the cosine `NO_NEIGHBOUR`."""
        for start in range(0, len(self._vectors), BLOCK):
            yield self._nearest(np.arange(start, min(start + BLOCK, len(self._vectors))), count)

    def recall(self, count: int, least: float) -> float:
        """The share found of the nearest texts with at least this cosine, on a sample; 1 where there are none."""
        size = len(self._vectors)
        chosen = np.sort(np.random.default_rng(SEED).choice(size, min(SAMPLE, size), replace=False))
        cosines = self._vectors[chosen] @ self._vectors.T
        cosines[np.arange(len(chosen)), chosen] = NO_NEIGHBOUR
        best = np.sort(cosines, axis=1)[:, -count:]
        _, found = self._nearest(chosen, count)
        there = int((best >= least).sum())
        return int((found >= least).sum()) / there if there else 1.0

    def _nearest(self, texts: npt.NDArray[np.int64], count: int) -> tuple[Indices, Matrix]:
        _, indices = self._index.search(self._vectors[texts], min(count + 1, len(self._vectors)))
        cosines = np.einsum("qd,qkd->qk", self._vectors[texts], self._vectors[np.maximum(indices, 0)])
        cosines[(indices < 0) | (indices == texts[:, None])] = NO_NEIGHBOUR
        order = np.lexsort((indices, -cosines), axis=1)[:, :count]
        return np.take_along_axis(indices, order, 1), np.take_along_axis(cosines, order, 1)


def nearest_of(vectors: Matrix, count: int, least: float) -> tuple[Iterator[tuple[Indices, Matrix]], float]:
    """As `nearest_texts`, and the share of those with at least this cosine that is found."""
    if len(vectors) <= EXACT_ROWS:
        return nearest_texts(vectors, count), 1.0
    index = ApproximateNeighbours(vectors)
    return index.nearest(count), index.recall(count, least)
