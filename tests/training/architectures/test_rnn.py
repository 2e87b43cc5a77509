"""The RNN encoders against their equations; the cell itself is in test_recurrent.py."""

import numpy as np
import pytest
import torch

from tests import toys
from training.architectures import RNNConfig, RNNEncoder
from training.architectures.models import SiameseModel
from training.architectures.parts.layers import WordEmbedding
from training.objectives.parts.regularisers import Regulariser, RegulariserConfig

ROWS = toys.table().rows
BATCH = torch.tensor([[3, 5, 9], [4, 0, 0], [7, 7, 2]]), torch.tensor([3, 1, 2])


def test_the_embedding_is_the_state_at_the_last_word() -> None:
    torch.manual_seed(0)
    encoder = RNNEncoder(RNNConfig(), WordEmbedding(ROWS))
    with torch.no_grad():
        encoder.rnn.hidden_weight += 0.3
        found = encoder(*BATCH).numpy()
    w, u = (p[0].detach().numpy() for p in (encoder.rnn.input_weight, encoder.rnn.hidden_weight))
    first = np.tanh(w @ ROWS[7])
    assert found[1] == pytest.approx(np.tanh(w @ ROWS[4]), abs=1e-6)
    assert found[2] == pytest.approx(np.tanh(w @ ROWS[7] + u @ first), abs=1e-6)


def test_the_identity_rnn_is_divided_by_the_number_of_words_and_others_are_not() -> None:
    encoder = RNNEncoder(RNNConfig("identity"), WordEmbedding(ROWS))
    with torch.no_grad():
        encoder.rnn.hidden_weight[0] = 0.5 * torch.eye(toys.DIM)
        found = encoder(*BATCH).numpy()
    assert found[0] == pytest.approx((0.25 * ROWS[3] + 0.5 * ROWS[5] + ROWS[9]) / 3, abs=1e-6)
    assert found[2] == pytest.approx((0.5 * ROWS[7] + ROWS[7]) / 2, abs=1e-6)


def test_the_identity_rnn_is_pulled_to_its_start_by_the_universal_penalty() -> None:
    model = SiameseModel(RNNEncoder(RNNConfig("identity"), WordEmbedding(ROWS)))
    regulariser = Regulariser(model, RegulariserConfig(universal=10.0))
    ids = BATCH[0]
    assert regulariser(ids).item() == 0.0
    rnn = model.encoder.rnn
    with torch.no_grad():
        rnn.input_weight[0, 1, 1] += 0.2  # off the identity
        rnn.hidden_weight[0, 0, 3] -= 0.1
        rnn.bias[0, 2] += 0.3
    penalty = regulariser(ids)
    assert penalty.item() == pytest.approx(10 * (0.04 + 0.01 + 0.09), rel=1e-5)
    penalty.backward()
    assert rnn.input_weight.grad[0, 1, 1].item() == pytest.approx(10 * 2 * 0.2, rel=1e-5)
    assert rnn.input_weight.grad.count_nonzero() == 1
