"""Recurrent cells against their equations, written out one step at a time, and against their exported graphs."""

import functools
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from tests import toys
from training.architectures import LSTMConfig, RNNConfig
from training.architectures.parts.layers import WordEmbedding
from training.architectures.parts.recurrent import LSTM, RNN, Steps
from training.publishing.export import export_encoder
from training.publishing.graphs import ParityError
from training.publishing.parity import check_encoder

Vector = np.ndarray
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


def sigmoid(x: Vector) -> Vector:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(layer: LSTM, k: int, sentence: Vector, first_cell: Vector | None = None) -> tuple[Vector, Vector]:
    """The states [T, H] and the last cell [H] of one sentence, from Wieting et al. (2016), section 3."""
    names = "iofc" if layer.output_gate else "ifc"
    size = layer.hidden

    def rows(parameter: Tensor, of: str = names) -> dict[str, Vector]:
        value = parameter[k].detach().numpy()
        return {gate: value[n * size : (n + 1) * size] for n, gate in enumerate(of)}

    w, u, b = rows(layer.input_weight), rows(layer.hidden_weight), rows(layer.bias)
    p = dict.fromkeys("iof", np.zeros(size))
    if layer.peephole is not None:
        p = rows(layer.peephole, names[:-1])
    h = np.zeros(size)
    c = h if first_cell is None else first_cell
    states = []
    for x in sentence:
        i = sigmoid(w["i"] @ x + u["i"] @ h + p["i"] * c + b["i"])
        f = sigmoid(w["f"] @ x + u["f"] @ h + p["f"] * c + b["f"])
        c_before, c = c, f * c + i * np.tanh(w["c"] @ x + u["c"] @ h + b["c"])
        assert layer.peephole is None or not np.allclose(c_before, c)  # the output gate's peephole sees the new one
        o = sigmoid(w["o"] @ x + u["o"] @ h + p["o"] * c + b["o"]) if layer.output_gate else 1.0
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states), c


@pytest.mark.parametrize("output_gate", [True, False])
@pytest.mark.parametrize("peepholes", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_an_lstm_is_its_equations(output_gate: bool, peepholes: bool, bidirectional: bool) -> None:
    layer = LSTM(D, H, peepholes=peepholes, output_gate=output_gate, bidirectional=bidirectional)
    disturbed(layer)
    x = inputs()
    with torch.no_grad():
        states, last = layer(x, LENGTHS)
    assert states.shape == (5, 8, 1 + bidirectional, H)
    for row, n in enumerate(LENGTHS.tolist()):
        sentence = x[row, :n].numpy()
        forward, _ = lstm_by_hand(layer, 0, sentence)
        assert states[row, :n, 0].numpy() == pytest.approx(forward, abs=1e-6)
        assert last[row, 0].numpy() == pytest.approx(forward[-1], abs=1e-6)
        if bidirectional:
            backward, _ = lstm_by_hand(layer, 1, sentence[::-1])
            assert states[row, :n, 1].numpy() == pytest.approx(backward[::-1], abs=1e-6)
            assert last[row, 1].numpy() == pytest.approx(backward[-1], abs=1e-6)
        assert states[row, n:].abs().sum() == 0


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


def test_without_given_cells_it_starts_from_zero() -> None:
    layer, x = disturbed(LSTM(D, H, bidirectional=True)), inputs()
    states, last = layer(x, LENGTHS)
    for first in (None, torch.zeros(2, len(LENGTHS), H)):
        again, last_again, _ = layer.conditioned(x, LENGTHS, first)
        assert torch.equal(states, again)
        assert torch.equal(last, last_again)


def test_without_peepholes_it_is_torchs_own_lstm() -> None:
    layer = disturbed(LSTM(D, H, peepholes=False, bidirectional=True))
    other = nn.LSTM(D, H, batch_first=True, bidirectional=True)

    def reordered(weight: Tensor) -> Tensor:
        i, o, f, c = weight.chunk(4)
        return torch.cat([i, f, c, o])

    with torch.no_grad():
        for k, suffix in enumerate(["l0", "l0_reverse"]):
            getattr(other, f"weight_ih_{suffix}").copy_(reordered(layer.input_weight[k]))
            getattr(other, f"weight_hh_{suffix}").copy_(reordered(layer.hidden_weight[k]))
            getattr(other, f"bias_ih_{suffix}").copy_(reordered(layer.bias[k]))
            getattr(other, f"bias_hh_{suffix}").zero_()
        x = inputs()
        packed = nn.utils.rnn.pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
        expected, _ = nn.utils.rnn.pad_packed_sequence(other(packed)[0], batch_first=True)
        states, _ = layer(x, LENGTHS)
    assert torch.allclose(states.flatten(2)[:, :6], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("activation", "function"),
    [("tanh", np.tanh), ("identity", lambda x: x)],
)
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


def test_gradients_are_those_of_finite_differences() -> None:
    layer = disturbed(LSTM(2, 2, bidirectional=True)).double()
    lengths = torch.tensor([2, 3, 1])
    x = torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True)
    parameters = tuple(layer.parameters())
    assert torch.autograd.gradcheck(lambda *_: layer(x, lengths), (x, *parameters))
    first = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *_: layer.conditioned(x, lengths, first), (x, first, *parameters))


def test_a_forget_bias_is_the_forget_gates_alone() -> None:
    assert LSTM(2, 1, forget_bias=2.5).bias.tolist() == [[0, 0, 2.5, 0]]
    assert LSTM(2, 1, forget_bias=2.5, output_gate=False, bidirectional=True).bias.tolist() == [[0, 2.5, 0]] * 2


def test_packing_reads_every_real_token_once_and_unpacking_puts_it_back() -> None:
    values = torch.arange(12.0).reshape(3, 4, 1)
    lengths = torch.tensor([2, 4, 1])
    forward, backward = Steps(lengths, 4), Steps(lengths, 4, backwards=True)
    assert forward.counts == backward.counts == [3, 2, 1, 1]
    assert forward.pack(values).flatten().tolist() == [4, 0, 8, 5, 1, 6, 7]
    assert backward.pack(values).flatten().tolist() == [7, 1, 8, 6, 0, 5, 4]
    for steps in (forward, backward):
        back = steps.unpack(steps.pack(values).split(steps.counts))
        assert back[:, :, 0].tolist() == [[0, 1, 0, 0], [4, 5, 6, 7], [8, 0, 0, 0]]
    assert forward.at_end(forward.pack(values).split(forward.counts)).flatten().tolist() == [1, 7, 8]
    assert backward.at_end(backward.pack(values).split(backward.counts)).flatten().tolist() == [0, 4, 8]


class TwoReadings(nn.Module):
    """A sentence, and again from the cells the first reading ended with."""

    def __init__(self, embedding: nn.Module, **options: bool) -> None:
        super().__init__()
        self.embedding = embedding
        self.first, self.second = (disturbed(LSTM(toys.DIM, H, **options)) for _ in range(2))

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        words = self.embedding(input_ids_BT)
        _, _, cells = self.first.conditioned(words, lengths_B)
        _, last, cells = self.second.conditioned(words, lengths_B, cells)
        return torch.cat([last.flatten(1), cells.transpose(0, 1).flatten(1)], dim=1)


@pytest.mark.parametrize(
    "options",
    [{"bidirectional": True, "peepholes": False}, {"output_gate": False}],
    ids=["both directions", "peepholes, no output gate"],
)
def test_cells_are_handed_on_in_a_graph(options: dict[str, bool], tmp_path: Path) -> None:
    rows = toys.table().rows
    module = TwoReadings(WordEmbedding(rows), **options)
    path = tmp_path / "encoder.onnx"
    export_encoder(module, path, "toy")
    assert check_encoder(path, module, len(rows)) < 1e-5
    model = onnx.load(path)
    _, second = [node for node in model.graph.node if node.op_type == "LSTM"]
    second.input[6] = ""
    onnx.save(model, path)
    with pytest.raises(ParityError, match="differs by"):
        check_encoder(path, module, len(rows))


# What an export can get wrong; each of these graphs runs, and must be refused.


def recurrent_node(model: onnx.ModelProto) -> onnx.NodeProto:
    (node,) = [node for node in model.graph.node if node.op_type in ("LSTM", "RNN")]
    return node


def rearranged(model: onnx.ModelProto, position: int, order: list[int]) -> None:
    """Blocks of rows of an input of the node, in another order."""
    name = recurrent_node(model).input[position]
    (tensor,) = [each for each in model.graph.initializer if each.name == name]
    blocks = np.split(numpy_helper.to_array(tensor), len(order), axis=1)
    tensor.CopyFrom(numpy_helper.from_array(np.concatenate([blocks[n] for n in order], axis=1), name))


def without_input(model: onnx.ModelProto, position: int) -> None:
    recurrent_node(model).input[position] = ""


def in_torchs_order(model: onnx.ModelProto) -> None:
    for position in (1, 2):
        rearranged(model, position, [0, 2, 3, 1])  # i, f, g, o for i, o, f, c


def one_way(model: onnx.ModelProto) -> None:
    node = recurrent_node(model)
    (direction,) = [a for a in node.attribute if a.name == "direction"]
    direction.s = b"reverse"


def with_activation(model: onnx.ModelProto, name: bytes) -> None:
    (activations,) = [a for a in recurrent_node(model).attribute if a.name == "activations"]
    activations.strings[0] = name


@functools.cache
def exported(config: LSTMConfig | RNNConfig) -> tuple[nn.Module, bytes]:
    """An encoder and its graph, which is seen to be right."""
    encoder = toys.model(config).encoder
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if name != "embedding.weight":
                parameter.add_(torch.randn_like(parameter) * 0.01)
    with TemporaryDirectory() as folder:
        path = Path(folder, "encoder.onnx")
        export_encoder(encoder, path, "toy")
        assert check_encoder(path, encoder, len(toys.table().rows)) < 1e-5
        return encoder, path.read_bytes()


@pytest.mark.parametrize(
    ("config", "damage"),
    [
        pytest.param(LSTMConfig(), lambda m: without_input(m, 7), id="no peepholes"),
        pytest.param(LSTMConfig(), lambda m: rearranged(m, 7, [0, 2, 1]), id="peepholes of other gates"),
        pytest.param(LSTMConfig(), in_torchs_order, id="torch's order of gates"),
        pytest.param(LSTMConfig(), lambda m: without_input(m, 3), id="no bias"),
        pytest.param(LSTMConfig(), lambda m: without_input(m, 4), id="no lengths"),
        pytest.param(LSTMConfig(), one_way, id="the other direction"),
        pytest.param(LSTMConfig(output_gate=False), lambda m: rearranged(m, 3, [1, 0, *range(2, 8)]), id="shut gate"),
        pytest.param(RNNConfig("identity"), lambda m: with_activation(m, b"Tanh"), id="another activation"),
        pytest.param(RNNConfig("identity"), lambda m: without_input(m, 4), id="no lengths in an RNN"),
    ],
)
def test_a_wrong_graph_is_refused(
    config: LSTMConfig | RNNConfig, damage: Callable[[onnx.ModelProto], None], tmp_path: Path
) -> None:
    encoder, graph = exported(config)
    model = onnx.load_model_from_string(graph)
    damage(model)
    path = tmp_path / "encoder.onnx"
    onnx.save(model, path)
    with pytest.raises(ParityError, match="differs by"):
        check_encoder(path, encoder, len(toys.table().rows))
