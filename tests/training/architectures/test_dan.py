"""The deep averaging network against its equation."""

import numpy as np
import pytest
import torch

from tests import toys
from training.architectures import DAN, DANConfig
from training.architectures.parts.layers import WordEmbedding

ROWS = toys.table().rows


def test_it_is_its_layer_on_the_mean() -> None:
    torch.manual_seed(0)
    encoder = DAN(DANConfig(), WordEmbedding(ROWS))
    layer = encoder.layers[0]
    with torch.no_grad():
        layer.bias += 0.1
        found = encoder(torch.tensor([[3, 5, 9], [4, 0, 0]]), torch.tensor([3, 1])).numpy()
    for row, mean in zip(found, (ROWS[[3, 5, 9]].mean(0), ROWS[4]), strict=True):
        assert row == pytest.approx(np.tanh(layer.weight.detach().numpy() @ mean + 0.1), abs=1e-5)
