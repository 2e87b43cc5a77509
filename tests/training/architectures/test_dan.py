"""Deep averaging networks against their equations."""

import numpy as np
import pytest
import torch

from tests import toys
from training.architectures import DAN, DANConfig
from training.architectures.parts.layers import WordEmbedding

ROWS = toys.table().rows
BATCH = torch.tensor([[3, 5, 9], [4, 0, 0]]), torch.tensor([3, 1])


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_its_layers_on_the_mean(activation: str, layers: int) -> None:
    torch.manual_seed(0)
    config = DANConfig(layers=layers, activation=activation, hidden=5)  # type: ignore[arg-type]
    encoder = DAN(config, WordEmbedding(ROWS))
    linear = [part for part in encoder.layers if isinstance(part, torch.nn.Linear)]
    assert len(linear) == layers
    with torch.no_grad():
        for n, layer in enumerate(linear):
            layer.bias += 0.1 * (n + 1)
        found = encoder(*BATCH).numpy()
    for row, mean in zip(found, (ROWS[[3, 5, 9]].mean(0), ROWS[4]), strict=True):
        z = mean
        for n, layer in enumerate(linear):
            inside = layer.weight.detach().numpy() @ z + 0.1 * (n + 1)
            z = np.tanh(inside) if activation == "tanh" else np.maximum(inside, 0)
        assert row == pytest.approx(z, abs=1e-5)


def test_a_network_without_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 layer, got layers=0"):
        DAN(DANConfig(layers=0), WordEmbedding(ROWS))
