"""Encoders of one sentence against their equations; their cells are in parts/test_parts.py."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.harness import toys
from training.models import (
    GRAN,
    ArchitectureConfig,
    DANConfig,
    GRANConfig,
    LSTMConfig,
    LSTMEncoder,
    ProjectionConfig,
    RNNConfig,
    RNNEncoder,
    WordAveragingConfig,
    build_encoder,
)
from training.models.layers import WordEmbedding

ROWS = toys.table().rows
BATCH = torch.tensor([[3, 5, 9], [4, 0, 0], [7, 7, 2]]), torch.tensor([3, 1, 2])
MEANS = ROWS[[3, 5, 9]].mean(0), ROWS[4], ROWS[7]


def averaging(mean: np.ndarray, encoder: Any) -> np.ndarray:
    return mean


def dan(mean: np.ndarray, encoder: Any) -> np.ndarray:
    return np.tanh(encoder.layers[0].weight.numpy() @ mean + 0.1)


def projection(mean: np.ndarray, encoder: Any) -> np.ndarray:
    return encoder.projection.weight.numpy() @ mean + 0.1


OF_MEANS = [(WordAveragingConfig(), averaging, toys.DIM), (DANConfig(), dan, toys.DIM)]
OF_MEANS += [(ProjectionConfig(outputs=outputs), projection, outputs or toys.DIM) for outputs in (None, 3, 20)]


@pytest.mark.parametrize(("config", "expected", "width"), OF_MEANS, ids=[str(case[0]) for case in OF_MEANS])
@torch.no_grad()
def test_what_is_made_of_the_mean_of_the_words(config: ArchitectureConfig, expected: Any, width: int) -> None:
    torch.manual_seed(0)
    encoder = build_encoder(config, WordEmbedding(ROWS))
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            parameter += 0.1
    found = encoder(*BATCH).numpy()
    assert found.shape == (3, width)
    for row, mean in zip(found, MEANS, strict=True):
        assert row == pytest.approx(expected(mean, encoder), abs=1e-5)


def test_the_identity_rnn_is_divided_by_the_number_of_words_and_others_are_not() -> None:
    encoder = RNNEncoder(RNNConfig("identity"), WordEmbedding(ROWS))
    with torch.no_grad():
        encoder.rnn.hidden_weight[0] = 0.5 * torch.eye(toys.DIM)
        found = encoder(*BATCH).numpy()
    assert found[0] == pytest.approx((0.25 * ROWS[3] + 0.5 * ROWS[5] + ROWS[9]) / 3, abs=1e-6)
    assert found[2] == pytest.approx((0.5 * ROWS[7] + ROWS[7]) / 2, abs=1e-6)


def test_a_network_that_remembers_begins_near_a_mean_that_weighs_its_last_words_most() -> None:
    encoder = RNNEncoder(RNNConfig("tanh", memory=0.5), WordEmbedding(ROWS))
    with torch.no_grad():
        found = encoder(*BATCH).numpy()
    first = np.tanh(0.05 * ROWS[3])
    assert found[0] == pytest.approx(np.tanh(0.5 * np.tanh(0.5 * first + 0.05 * ROWS[5]) + 0.05 * ROWS[9]), abs=1e-6)
    assert found[1] == pytest.approx(np.tanh(0.05 * ROWS[4]), abs=1e-6)


IDS, LENGTHS = torch.tensor([[3, 5, 9, 2], [4, 0, 0, 0], [7, 7, 2, 0]]), torch.tensor([4, 1, 3])


def lstm(config: LSTMConfig) -> LSTMEncoder:
    torch.manual_seed(0)
    return LSTMEncoder(config, WordEmbedding(ROWS))


def states(of: LSTMEncoder, row: int) -> tuple[Tensor, Tensor]:
    """States [n, K, H] and last states [K, H] of one sentence."""
    n = int(LENGTHS[row])
    every, last = of.lstm(of.embedding(IDS[row : row + 1, :n]), LENGTHS[row : row + 1])
    return every[0], last[0]


@pytest.mark.parametrize("row", range(3))
def test_last_mean_and_their_bidirectional_forms(row: int) -> None:
    with torch.no_grad():
        last = lstm(LSTMConfig())
        assert torch.allclose(last(IDS, LENGTHS)[row], states(last, row)[0][-1, 0], atol=1e-6)
        mean = lstm(LSTMConfig(pooling="mean", output_gate=False))
        assert torch.allclose(mean(IDS, LENGTHS)[row], states(mean, row)[0].mean(0)[0], atol=1e-6)
        both = lstm(LSTMConfig(pooling="mean", bidirectional=True))
        assert torch.allclose(both(IDS, LENGTHS)[row], states(both, row)[0].mean(0).sum(0), atol=1e-6)
        ends = lstm(LSTMConfig(bidirectional=True))
        assert torch.allclose(ends(IDS, LENGTHS)[row], states(ends, row)[1].sum(0), atol=1e-6)


@pytest.mark.parametrize("both", [False, True])
def test_a_second_layer_reads_the_states_of_the_first(both: bool) -> None:
    two = lstm(LSTMConfig(hidden=6, layers=2, bidirectional=both))
    (above,) = two.above
    with torch.no_grad():
        below = states(two, 0)[0].sum(1)  # the directions added
        expected = above(below[None], LENGTHS[:1])[1][0].sum(0)
        assert torch.allclose(two(IDS, LENGTHS)[0], expected, atol=1e-6)
        assert not torch.allclose(expected, states(two, 0)[1].sum(0), atol=1e-2)
    two(IDS, LENGTHS).sum().backward()
    assert all(p.grad is not None for p in two.above.parameters())


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_the_embedding_is_scaled_and_nothing_else(pooling: str) -> None:
    plain, scaled = (lstm(LSTMConfig(pooling=pooling, scale=scale)) for scale in (1.0, 4.0))
    assert torch.equal(scaled(IDS, LENGTHS), 4.0 * plain(IDS, LENGTHS))


def gated(config: GRANConfig) -> GRAN:
    """With biases that are not zero."""
    torch.manual_seed(0)
    gran = GRAN(config, WordEmbedding(ROWS))
    with torch.no_grad():
        for name, parameter in gran.named_parameters():
            if name.endswith("bias"):
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return gran


def words_and_states(gran: GRAN, row: int) -> tuple[Tensor, Tensor]:
    """x [n, D] and h [n, K, H] of one sentence."""
    n = LENGTHS[row : row + 1]
    x = gran.embedding(IDS[row : row + 1, : int(n)])
    return x[0], gran.lstm(x, n)[0][0]


def gate(layer: torch.nn.Module, part: slice, x: Tensor, h: Tensor, a: Tensor | None = None) -> Tensor:
    """sigmoid(Wx x + Wh h [+ Wa a] + b) of some rows of the matrices."""
    inside = layer.words.weight[part] @ x + layer.states.weight[part] @ h + layer.words.bias[part]
    return torch.sigmoid(inside if a is None else inside + layer.sums.weight[part] @ a)


def by_hand(gran: GRAN, config: GRANConfig, row: int) -> Tensor:
    x, h = words_and_states(gran, row)
    variant = config.variant
    if config.bidirectional:  # a gate in each direction
        total = torch.zeros(toys.DIM)
        for t in range(len(x)):
            a = [x[t] * gate(gran.gates[k], slice(0, toys.DIM), x[t], h[t, k]) for k in range(2)]
            total += a[0] + a[1]
        return total / len(x)
    h = h[:, 0]
    layer = gran.gates[0]
    n, d = x.shape
    first, second = slice(0, d), slice(d, 2 * d)
    if not gran.gated:
        inside = x @ layer.words.weight.T + h @ layer.states.weight.T + layer.words.bias
        return torch.tanh(inside).mean(dim=0)
    if variant == 1:
        return sum(x[t] * gate(layer, first, x[t], h[t]) for t in range(n)) / n
    if variant == 2:
        return sum(h[t] * gate(layer, slice(0, h.shape[1]), x[t], h[t]) for t in range(n)) / n
    if variant == 5:
        gates = [(gate(layer, first, x[t], h[t]), gate(layer, second, x[t], h[t])) for t in range(n)]
        return sum(x[t] * gates[t][0] + h[t] * gates[t][1] for t in range(n)) / n
    a = torch.zeros(d)
    for t in range(n):
        seen = a if variant == 4 else None
        a = x[t] * gate(layer, first, x[t], h[t], seen) + a * gate(layer, second, x[t], h[t], seen)
    return a / n


VARIANTS = [*(GRANConfig(v) for v in (1, 2, 3, 4, 5)), GRANConfig(gated=False), GRANConfig(bidirectional=True)]


@pytest.mark.parametrize("config", VARIANTS, ids=str)
def test_every_variant_is_its_equation(config: GRANConfig) -> None:
    gran = gated(config)
    with torch.no_grad():
        found = gran(IDS, LENGTHS)
        for row in range(len(IDS)):
            assert torch.allclose(found[row], by_hand(gran, config, row), atol=1e-6)
