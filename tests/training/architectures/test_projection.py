"""Projection against its equation."""

import pytest
import torch

from tests import toys
from training.architectures import Projection, ProjectionConfig
from training.architectures.parts.layers import WordEmbedding

ROWS = toys.table().rows


@pytest.mark.parametrize("outputs", [None, 3, 20])
def test_it_is_a_linear_map_of_the_mean(outputs: int | None) -> None:
    torch.manual_seed(0)
    encoder = Projection(ProjectionConfig(outputs=outputs), WordEmbedding(ROWS))
    with torch.no_grad():
        encoder.projection.bias += 0.3
        found = encoder(torch.tensor([[3, 5, 9], [4, 0, 0]]), torch.tensor([3, 1])).numpy()
    weight = encoder.projection.weight.detach().numpy()
    assert weight.shape == (outputs or toys.DIM, toys.DIM)
    assert found[0] == pytest.approx(weight @ ROWS[[3, 5, 9]].mean(0) + 0.3, abs=1e-5)
    assert found[1] == pytest.approx(weight @ ROWS[4] + 0.3, abs=1e-5)
