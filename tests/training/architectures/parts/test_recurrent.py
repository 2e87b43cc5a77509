"""Recurrent cells against their equations, written out one step at a time."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.harness.by_hand import Vector, lstm_by_hand
from training.architectures.parts.recurrent import LSTM, RNN

LENGTHS = torch.tensor([3, 6, 1, 6, 2])
D, H = 4, 3


def inputs(seed: int = 0) -> Tensor:
    """Random vectors, on the padding too: nothing may read them there."""
    return torch.randn(len(LENGTHS), 8, D, generator=torch.Generator().manual_seed(seed))


def disturbed(layer: nn.Module) -> nn.Module:
    """Biases away from zero, so that each of them is seen."""
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return layer


@pytest.mark.parametrize("output_gate", [True, False])
@pytest.mark.parametrize("peepholes", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_an_lstm_reads_on_from_given_cells(output_gate: bool, peepholes: bool, bidirectional: bool) -> None:
    layer = LSTM(D, H, peepholes=peepholes, output_gate=output_gate, bidirectional=bidirectional)
    disturbed(layer)
    x, first = inputs(), torch.randn(1 + bidirectional, len(LENGTHS), H)
    with torch.no_grad():
        states, last, cells = layer.conditioned(x, LENGTHS, first)
    assert cells.shape == first.shape
    for row, n in enumerate(LENGTHS.tolist()):
        for k in range(layer.directions):
            sentence = x[row, :n].numpy()[:: 1 if k == 0 else -1]
            expected, cell = lstm_by_hand(layer, k, sentence, first[k, row].numpy())
            assert states[row, :n, k].numpy()[:: 1 if k == 0 else -1] == pytest.approx(expected, abs=1e-6)
            assert last[row, k].numpy() == pytest.approx(expected[-1], abs=1e-6)
            assert cells[k, row].numpy() == pytest.approx(cell, abs=1e-6)
        assert states[row, n:].abs().sum() == 0


@pytest.mark.parametrize(("activation", "function"), [("tanh", np.tanh), ("identity", lambda x: x)])
def test_an_rnn_is_its_equation(activation: str, function: Callable[[Vector], Vector]) -> None:
    layer = disturbed(RNN(D, H, activation))  # type: ignore[arg-type]
    x = inputs()
    with torch.no_grad():
        states, last = layer(x, LENGTHS)
    w, u, b = (p[0].detach().numpy() for p in (layer.input_weight, layer.hidden_weight, layer.bias))
    for row, n in enumerate(LENGTHS.tolist()):
        h = np.zeros(H)
        for t in range(n):
            h = function(w @ x[row, t].numpy() + u @ h + b)
            assert states[row, t, 0].numpy() == pytest.approx(h, abs=1e-5)
        assert last[row, 0].numpy() == pytest.approx(h, abs=1e-5)
        assert states[row, n:].abs().sum() == 0


def test_a_forget_bias_is_the_forget_gates_alone() -> None:
    assert LSTM(2, 1, forget_bias=2.5).bias.tolist() == [[0, 0, 2.5, 0]]
    assert LSTM(2, 1, forget_bias=2.5, output_gate=False, bidirectional=True).bias.tolist() == [[0, 2.5, 0]] * 2
