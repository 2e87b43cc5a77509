"""The matching of many pairs at once against the walk of the paper, cell by cell, on ragged pairs and equal values."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.by_hand import Cell, Matrix, matched
from training.architectures.parts.focus import greedy_matching


def batch(matrices: list[Matrix], rows: int, columns: int, filling: float) -> tuple[Tensor, Tensor]:
    """Ragged matrices in one tensor [B, rows, columns], and where their cells are real."""
    similarity = torch.full((len(matrices), rows, columns), filling)
    real = torch.zeros_like(similarity, dtype=torch.bool)
    for pair, matrix in enumerate(matrices):
        for i, row in enumerate(matrix):
            similarity[pair, i, : len(row)] = torch.tensor(row)
            real[pair, i, : len(row)] = True
    return similarity, real


def cells(mask: Tensor) -> list[set[Cell]]:
    return [{(int(i), int(j)) for i, j in pair.nonzero()} for pair in mask]


@st.composite
def ragged(draw: st.DrawFn) -> list[Matrix]:
    """Up to five matrices of up to 7 x 7; few different values, so that most of them tie, or many."""
    value = draw(st.sampled_from([st.integers(-1, 1), st.integers(-9, 9), st.integers(-(10**6), 10**6)]))
    sizes = draw(st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=5))
    return [[[float(draw(value)) for _ in range(columns)] for _ in range(rows)] for rows, columns in sizes]


@given(ragged(), st.integers(0, 3), st.sampled_from([0.0, 1e9, -1e9, float("inf"), float("nan")]))
def test_the_matching_is_that_of_the_walk_whatever_the_padding_holds(
    matrices: list[Matrix], padding: int, filling: float
) -> None:
    rows, columns = max(map(len, matrices)) + padding, max(len(m[0]) for m in matrices) + padding
    taken = greedy_matching(*batch(matrices, rows, columns, filling))
    assert cells(taken) == [matched(matrix) for matrix in matrices]
    assert set(taken.unique().tolist()) <= {0.0, 1.0}
    assert taken.sum((1, 2)).tolist() == [min(len(matrix), len(matrix[0])) for matrix in matrices]
