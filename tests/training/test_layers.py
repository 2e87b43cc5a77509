"""Masks, word embeddings and their small storage forms."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from training.layers import Float16Embedding, Int8Embedding, WordEmbedding, mask

ROWS = np.array([[0, 0, 0], [1, -2, 3], [4, 5, 6], [-7, 8, 9]], dtype=np.float32)


def test_the_mask_is_one_on_real_tokens() -> None:
    assert mask(torch.tensor([1, 3, 2]), 3).tolist() == [[1, 0, 0], [1, 1, 1], [1, 1, 0]]
    assert mask(torch.tensor([2]), 5).tolist() == [[1, 1, 0, 0, 0]]


@pytest.mark.parametrize("sparse", [True, False])
def test_word_embedding_gathers_and_its_gradient_touches_only_what_it_gathered(sparse: bool) -> None:
    embedding = WordEmbedding(ROWS, sparse=sparse)
    vectors = embedding(torch.tensor([[1, 3], [1, 0]]))
    assert vectors.tolist() == [[ROWS[1].tolist(), ROWS[3].tolist()], [ROWS[1].tolist(), ROWS[0].tolist()]]
    vectors[:, 0].sum().backward()
    gradient = embedding.weight.grad
    assert gradient is not None
    assert gradient.is_sparse == sparse
    assert gradient.to_dense().tolist() == [[0, 0, 0], [2, 2, 2], [0, 0, 0], [0, 0, 0]]


def test_word_embedding_owns_its_rows() -> None:
    rows = ROWS.copy()
    embedding = WordEmbedding(rows)
    with torch.no_grad():
        embedding.weight += 1
    assert rows.tolist() == ROWS.tolist()
    assert embedding.start.tolist() == ROWS.tolist()
    assert list(embedding.state_dict()) == ["weight"]  # the start is made again from the table
    assert not WordEmbedding(ROWS, trainable=False).weight.requires_grad


def test_distance_from_start_counts_each_word_once() -> None:
    embedding = WordEmbedding(ROWS)
    with torch.no_grad():
        embedding.weight[1] += torch.tensor([1.0, 2.0, 0.0])
        embedding.weight[3] += 10.0
    distance = embedding.distance_from_start(torch.tensor([1, 1, 2, 1, 0]))
    assert distance.item() == pytest.approx(5.0)
    distance.backward()
    assert embedding.weight.grad is not None
    # 2 (row - start) for the rows that are here; row 3 moved too, but is not.
    assert embedding.weight.grad.to_dense().tolist() == [[0, 0, 0], [2, 4, 0], [0, 0, 0], [0, 0, 0]]


TABLES = arrays(np.float32, (5, 4), elements=st.floats(-1e4, 1e4, width=16))
IDS = torch.arange(5).reshape(1, 5)


@given(TABLES)
def test_int8_rows_are_off_by_half_a_step_at_most(rows: np.ndarray) -> None:
    found = Int8Embedding(torch.from_numpy(rows))(IDS)[0].numpy()
    step = np.abs(rows).max(axis=1, keepdims=True) / 127
    assert found.dtype == np.float32
    assert (np.abs(found - rows) <= step * 0.5001 + 1e-12).all()


@given(TABLES)
def test_int8_keeps_zeros_signs_and_the_largest_value(rows: np.ndarray) -> None:
    found = Int8Embedding(torch.from_numpy(rows))(IDS)[0].numpy()
    assert (found[rows == 0] == 0).all()
    assert (found * rows >= 0).all()
    assert np.abs(found).max(axis=1) == pytest.approx(np.abs(rows).max(axis=1), rel=1e-6)


@given(TABLES)
def test_float16_rows_are_off_by_half_a_unit_in_the_last_place(rows: np.ndarray) -> None:
    scaled = rows / np.float32(3)
    found = Float16Embedding(torch.from_numpy(scaled))(IDS)[0].numpy()
    assert found.dtype == np.float32
    assert (np.abs(found - scaled) <= np.maximum(np.abs(scaled) * 2.0**-11, 2.0**-25)).all()


def test_stored_rows_are_not_tied_to_the_ones_they_came_from() -> None:
    rows = torch.from_numpy(ROWS.copy()).requires_grad_()
    stored = [Int8Embedding(rows), Float16Embedding(rows)]
    before = [each(torch.tensor([[3]])) for each in stored]
    with torch.no_grad():
        rows.zero_()
    assert all(torch.equal(each(torch.tensor([[3]])), b) for each, b in zip(stored, before, strict=True))
    assert not any(list(each.parameters()) for each in stored)
