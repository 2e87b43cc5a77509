"""GRANs against the equations of section 3.1, one sentence and one word at a time."""

import pytest
import torch
from torch import Tensor

from tests.harness import toys
from training.architectures import GRAN, GRANConfig
from training.architectures.parts.layers import WordEmbedding

ROWS = toys.table().rows
IDS, LENGTHS = torch.tensor([[3, 5, 9, 2], [4, 0, 0, 0], [7, 7, 2, 0]]), torch.tensor([4, 1, 3])


def encoder(config: GRANConfig) -> GRAN:
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


def by_hand(gran: GRAN, variant: int, row: int) -> Tensor:
    x, h = words_and_states(gran, row)
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


@pytest.mark.parametrize("config", [*(GRANConfig(v) for v in (1, 2, 3, 4, 5)), GRANConfig(gated=False)], ids=str)
def test_every_variant_is_its_equation(config: GRANConfig) -> None:
    gran = encoder(config)
    with torch.no_grad():
        found = gran(IDS, LENGTHS)
        for row in range(len(IDS)):
            assert torch.allclose(found[row], by_hand(gran, config.variant, row), atol=1e-6)


@pytest.mark.parametrize("combine", ["sum", "tanh"])
def test_bigran_has_a_gate_in_each_direction(combine: str) -> None:
    gran = encoder(GRANConfig(bidirectional=True, combine=combine))  # type: ignore[arg-type]
    with torch.no_grad():
        found = gran(IDS, LENGTHS)
        for row in range(len(IDS)):
            x, h = words_and_states(gran, row)
            total = torch.zeros(toys.DIM)
            for t in range(len(x)):
                a = [x[t] * gate(gran.gates[k], slice(0, toys.DIM), x[t], h[t, k]) for k in range(2)]
                total += a[0] + a[1] if combine == "sum" else torch.tanh(gran.combination(torch.cat(a)))
            assert torch.allclose(found[row], total / len(x), atol=1e-6)
