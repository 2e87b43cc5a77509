"""Approximate nearest neighbours of hundreds of thousands of vectors in seconds, by random projection trees.

A tree splits the vectors recursively at the median along the difference of two of them (after the random
projection trees of S. Dasgupta, Y. Freund, STOC 2008); within a leaf the search is exact. Neighbours that one tree
separates are likely in the same leaf of another.

Shapes: N vectors, E dimensions, K neighbours.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from training.objectives.batches import Indices

LEAF = 6500  # vectors at most: 64 leaves for 400,000, 20 s a tree


def near_neighbours(vectors_NE: npt.NDArray[np.floating], *, each: int, trees: int, seed: int) -> Indices:
    """Of every vector, in each tree the `each` others of its leaf with the highest cosine: [N, trees * each].

    A neighbour found in several trees is repeated.
    """
    unit = normalize(torch.from_numpy(np.asarray(vectors_NE, dtype=np.float32)), dim=1)
    rng = np.random.default_rng(seed)
    found = np.empty((len(unit), trees * each), dtype=np.int64)
    for tree in range(trees):
        for leaf in _leaves(unit, max(LEAF, 2 * each + 2), rng):
            cosines = unit[leaf] @ unit[leaf].T
            cosines.fill_diagonal_(-2.0)  # exclude the vector itself
            nearest = cosines.topk(each, dim=1).indices.numpy()
            found[leaf, tree * each : (tree + 1) * each] = leaf[nearest]
    return found


def _leaves(unit_NE: Tensor, largest: int, rng: np.random.Generator) -> list[Indices]:
    leaves = [np.arange(len(unit_NE))]
    while len(leaves[0]) > largest:
        halves = []
        for leaf in leaves:
            one, other = rng.choice(leaf, 2, replace=False)
            order = leaf[np.argsort((unit_NE[leaf] @ (unit_NE[one] - unit_NE[other])).numpy(), kind="stable")]
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        leaves = halves
    return leaves
