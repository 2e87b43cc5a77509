"""Masks, word embeddings and their small storage forms."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from training.architectures.parts.layers import WordEmbedding, WordNoise, masked_mean
from training.words.storage import Int8Embedding

ROWS = np.array([[0, 0, 0], [1, -2, 3], [4, 5, 6], [-7, 8, 9]], dtype=np.float32)


def test_word_embedding_gathers_and_its_gradient_touches_only_what_it_gathered() -> None:
    embedding = WordEmbedding(ROWS)
    vectors = embedding(torch.tensor([[1, 3], [1, 0]]))
    assert vectors.tolist() == [[ROWS[1].tolist(), ROWS[3].tolist()], [ROWS[1].tolist(), ROWS[0].tolist()]]
    vectors[:, 0].sum().backward()
    gradient = embedding.weight.grad
    assert gradient is not None
    assert gradient.is_sparse
    assert gradient.to_dense().tolist() == [[0, 0, 0], [2, 2, 2], [0, 0, 0], [0, 0, 0]]


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


def test_the_masked_mean_leaves_the_padding_out() -> None:
    values = torch.from_numpy(ROWS[[1, 2, 3, 3, 1, 1]].reshape(2, 3, 3))
    found = masked_mean(values, torch.tensor([3, 1]))
    assert found[0].tolist() == pytest.approx(ROWS[[1, 2, 3]].mean(0).tolist(), abs=1e-6)
    assert found[1].tolist() == pytest.approx(ROWS[3].tolist())


def test_word_dropout_takes_whole_words_and_dropout_single_values() -> None:
    torch.manual_seed(0)
    ones = torch.ones(50, 20, 10)
    words = WordNoise(0.0, 0.2)(ones)
    assert set(words.sum(2).flatten().round(decimals=3).tolist()) == {0.0, 12.5}  # all of a word or none, scaled up
    assert (words == 0).float().mean().item() == pytest.approx(0.2, abs=0.04)
    values = WordNoise(0.4, 0.0)(ones)
    assert (values == 0).float().mean().item() == pytest.approx(0.4, abs=0.02)
    assert values.max().item() == pytest.approx(1 / 0.6)
    assert ((values.sum(2) > 0).float().mean()) > 0.99
    assert WordNoise(0.0, 0.0)(ones) is ones
    assert WordNoise(0.4, 0.2).eval()(ones) is ones
