"""Word averaging, DAN, projection and the RNNs against their equations; the RNN's cell is in test_recurrent.py."""

import numpy as np
import pytest
import torch

from tests.harness import toys
from training.architectures import (
    DAN,
    DANConfig,
    Projection,
    ProjectionConfig,
    RNNConfig,
    RNNEncoder,
    WordAveraging,
    WordAveragingConfig,
)
from training.architectures.parts.layers import WordEmbedding

ROWS = toys.table().rows
BATCH = torch.tensor([[3, 5, 9], [4, 0, 0], [7, 7, 2]]), torch.tensor([3, 1, 2])
MEANS = ROWS[[3, 5, 9]].mean(0), ROWS[4], ROWS[7]


def test_word_averaging_is_the_mean_of_the_words() -> None:
    encoder = WordAveraging(WordAveragingConfig(), WordEmbedding(ROWS))
    for row, mean in zip(encoder(*BATCH).detach().numpy(), MEANS, strict=True):
        assert row == pytest.approx(mean, abs=1e-6)
    assert [name for name, _ in encoder.named_parameters()] == ["embedding.weight"]


def test_dan_is_its_layer_on_the_mean() -> None:
    torch.manual_seed(0)
    encoder = DAN(DANConfig(), WordEmbedding(ROWS))
    layer = encoder.layers[0]
    with torch.no_grad():
        layer.bias += 0.1
        found = encoder(*BATCH).numpy()
    for row, mean in zip(found, MEANS, strict=True):
        assert row == pytest.approx(np.tanh(layer.weight.detach().numpy() @ mean + 0.1), abs=1e-5)


@pytest.mark.parametrize("outputs", [None, 3, 20])
def test_projection_is_a_linear_map_of_the_mean(outputs: int | None) -> None:
    torch.manual_seed(0)
    encoder = Projection(ProjectionConfig(outputs=outputs), WordEmbedding(ROWS))
    with torch.no_grad():
        encoder.projection.bias += 0.3
        found = encoder(*BATCH).numpy()
    weight = encoder.projection.weight.detach().numpy()
    assert weight.shape == (outputs or toys.DIM, toys.DIM)
    for row, mean in zip(found, MEANS, strict=True):
        assert row == pytest.approx(weight @ mean + 0.3, abs=1e-5)


def test_the_identity_rnn_is_divided_by_the_number_of_words_and_others_are_not() -> None:
    encoder = RNNEncoder(RNNConfig("identity"), WordEmbedding(ROWS))
    with torch.no_grad():
        encoder.rnn.hidden_weight[0] = 0.5 * torch.eye(toys.DIM)
        found = encoder(*BATCH).numpy()
    assert found[0] == pytest.approx((0.25 * ROWS[3] + 0.5 * ROWS[5] + ROWS[9]) / 3, abs=1e-6)
    assert found[2] == pytest.approx((0.5 * ROWS[7] + ROWS[7]) / 2, abs=1e-6)
