"""Which of many sentences, or pairs, go through a graph together."""

from math import prod

import numpy as np
import pytest

from service.compute.graph import PairGraph, SentenceGraph
from service.compute.padding import Budget, Padding, batched, padded


@pytest.mark.parametrize(
    ("lengths", "batches"),
    [
        ([3], [[0]]),
        ([3, 1, 2], [[1, 2, 0]]),  # 9 padded tokens fit
        ([1, 9, 1, 9, 1], [[0, 2, 4], [1], [3]]),
        ([20, 1], [[1], [0]]),  # one over the budget is alone
        ([5, 5, 5], [[0, 1], [2]]),
    ],
)
def test_batches_stay_within_the_padded_tokens(lengths, batches) -> None:
    assert batched([(length,) for length in lengths], prod, Budget(10, 99).most) == batches


@pytest.mark.parametrize(
    ("shapes", "batches"),
    [
        ([(3, 2)], [[0]]),
        ([(2, 2), (1, 1), (2, 1)], [[1, 2, 0]]),  # 12 padded cells fit
        ([(1, 1)] * 5, [[0, 1, 2, 3], [4]]),  # no more than 4
        ([(9, 9), (1, 1)], [[1], [0]]),  # one over the budget is alone
        ([(1, 6), (6, 1)], [[0], [1]]),  # 6 x 6 together
        ([(6, 1), (6, 1), (1, 2)], [[2, 0], [1]]),  # 6 x 2 each
    ],
)
def test_batches_stay_within_the_padded_cells_and_the_pairs(shapes, batches) -> None:
    assert batched(shapes, prod, Budget(24, 4).most) == batches


@pytest.mark.parametrize(
    ("axes", "budget", "longest"),
    [(1, SentenceGraph.budget, 300), (2, PairGraph.budget, 48), (2, PairGraph.budget, 30)],
)
def test_nothing_is_lost_or_doubled(axes: int, budget: Budget, longest: int) -> None:
    shapes = [tuple(shape) for shape in np.random.default_rng(0).integers(1, longest + 1, size=(500, axes)).tolist()]
    batches = batched(shapes, sum, budget.most)
    assert sorted(position for batch in batches for position in batch) == list(range(500))
    assert all(len(batch) <= budget.most(padded([shapes[i] for i in batch]).longest) for batch in batches)
    assert len(batches) > 1


def test_two_batches_in_one_are_padded_to_the_longest_of_both() -> None:
    joined = padded([(2, 5), (3, 1)]).with_(padded([(1, 7)]))
    assert joined == Padding((3, 7), 3)
