"""Recurrent layers: loops over the real tokens in training, one native ONNX operator in an exported graph.

The loop runs over a packed batch: sentences are sorted by length, and step t computes only those with a
t-th token, no padding. Under `torch.onnx.export` the same parameters go into the ONNX operators `LSTM` and
`RNN` (with `sequence_lens`, so padding has no effect there either); they are stored in ONNX's order of gates.
`training/publish/parity.py` compares both.

Shapes: B batch, T tokens, D input dimensions, H hidden, K directions, N real tokens of the batch.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

ALWAYS_OPEN = 100.0  # a gate's bias at which sigmoid is 1 in float32: an ONNX LSTM without an output gate

Attributes = dict[str, int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str] | Sequence[bool]]
Activation = Literal["tanh", "identity"]
_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "identity": lambda x: x}
_ONNX_NAMES: dict[Activation, str] = {"tanh": "Tanh", "identity": "Affine"}


class Steps:
    """Indices of the tokens of each step of a packed batch."""

    def __init__(self, lengths_B: Tensor, tokens: int, *, backwards: bool = False) -> None:
        """`backwards`: step t of a sentence is its t-th last token."""
        lengths, order = lengths_B.sort(descending=True, stable=True)
        step = torch.arange(int(lengths[0]), device=lengths.device)
        alive = step[:, None] < lengths[None, :]
        position = (lengths - 1 - step[:, None]) if backwards else step[:, None].expand(alive.shape)
        self.counts: list[int] = alive.sum(1).tolist()  # sentences alive at each step
        self.source_N = (order[None, :] * tokens + position)[alive]  # rows of a flattened [B * T]
        self.shape = (len(lengths_B), tokens)
        self.order = order  # longest sentence first: the order of rows within each step

    def pack(self, values_BTD: Tensor) -> Tensor:
        """Values [B, T, D] -> those of the real tokens, step by step [N, D]."""
        return values_BTD.flatten(0, 1).index_select(0, self.source_N)

    def unpack(self, values: Sequence[Tensor]) -> Tensor:
        """The steps' values, [count, H] each -> [B, T, H], zero on the padding."""
        packed_NH = torch.cat(list(values))
        empty = packed_NH.new_zeros(self.shape[0] * self.shape[1], packed_NH.shape[1])
        return empty.index_copy(0, self.source_N, packed_NH).unflatten(0, self.shape)

    def at_end(self, values: Sequence[Tensor]) -> Tensor:
        """The steps' values, [count, H] each -> every sentence's value of its own last step [B, H]."""
        following = [*self.counts[1:], 0]
        ended = [value[after:] for value, after in zip(values, following, strict=True) if after < len(value)]
        longest_first_BH = torch.cat(ended[::-1])
        return torch.empty_like(longest_first_BH).index_copy(0, self.order, longest_first_BH)


def at_real_tokens(function: Callable[..., Tensor], lengths_B: Tensor, *values_BTX: Tensor) -> Tensor:
    """A function of single tokens, at every token: values [B, T, X] each -> [B, T, Y].

    In training padding, half of a batch or more, is skipped; its result is zero. An exported graph applies the function
    to the padding too, so the caller must mask the result.
    """
    if torch.onnx.is_in_onnx_export():
        return function(*values_BTX)
    steps = Steps(lengths_B, values_BTX[0].shape[1])
    return steps.unpack([function(*(steps.pack(values) for values in values_BTX))])


class LSTM(nn.Module):
    """LSTM with peepholes, its output gate looking at c_t (Gers et al. 2003; equations in Wieting et al. 2016).

    i = sigmoid(Wxi x + Whi h' + wci * c' + bi),   f = sigmoid(Wxf x + Whf h' + wcf * c' + bf),
    c = f * c' + i * tanh(Wxc x + Whc h' + bc),    o = sigmoid(Wxo x + Who h' + wco * c + bo),   h = o * tanh(c),
    where ' marks the previous step and both states start at zero (in `conditioned`, c at a given value). Without an
    output gate h = tanh(c).
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        peepholes: bool = True,
        output_gate: bool = True,
        bidirectional: bool = False,
        forget_bias: float = 0.0,
        deviation: float = 0.1,
    ) -> None:
        """Weights start Gaussian with that `deviation`, as in the release; biases at 0, but for the forget gate's."""
        super().__init__()
        self.hidden, self.output_gate, self.directions = hidden, output_gate, 2 if bidirectional else 1
        gates = "iofc" if output_gate else "ifc"  # ONNX's order
        self.input_weight = nn.Parameter(torch.randn(self.directions, len(gates) * hidden, inputs) * deviation)
        self.hidden_weight = nn.Parameter(torch.randn(self.directions, len(gates) * hidden, hidden) * deviation)
        bias = torch.zeros(self.directions, len(gates), hidden)
        bias[:, gates.index("f")] = forget_bias
        self.bias = nn.Parameter(bias.flatten(1))
        self.peephole = (
            nn.Parameter(torch.randn(self.directions, (len(gates) - 1) * hidden) * deviation) if peepholes else None
        )

    def forward(self, x_BTD: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs [B, T, D], lengths [B] -> states h [B, T, K, H], zero on the padding; last states [B, K, H].

        The backward direction's last state is the one at the first token.
        """
        return self.conditioned(x_BTD, lengths_B)[:2]

    def conditioned(
        self, x_BTD: Tensor, lengths_B: Tensor, first_cells_KBH: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `forward`, starting from the given cells c (the last ones of another layer) or zero; h starts at zero.

        Returns:
            States [B, T, K, H] and last states [B, K, H], as `forward`, and the last cells [K, B, H].
        """
        if torch.onnx.is_in_onnx_export():
            return self._as_onnx(x_BTD, lengths_B, first_cells_KBH)
        walks = [self._direction(k, x_BTD, lengths_B, first_cells_KBH) for k in range(self.directions)]
        states_BTKH, last_BKH = _together([steps.unpack(states) for steps, states, _ in walks], lengths_B)
        return states_BTKH, last_BKH, torch.stack([steps.at_end(cells) for steps, _, cells in walks])

    def _direction(
        self, k: int, x_BTD: Tensor, lengths_B: Tensor, first_cells_KBH: Tensor | None
    ) -> tuple[Steps, list[Tensor], list[Tensor]]:
        """Run one direction; h and c of each step, packed."""
        steps = Steps(lengths_B, x_BTD.shape[1], backwards=k == 1)
        projected_NG = nn.functional.linear(steps.pack(x_BTD), self.input_weight[k], self.bias[k])
        recurrent_HG = self.hidden_weight[k].T
        peephole = self.peephole[k].split(self.hidden) if self.peephole is not None else None
        h = c = x_BTD.new_zeros(steps.counts[0], self.hidden)
        if first_cells_KBH is not None:
            c = first_cells_KBH[k].index_select(0, steps.order)
        states, cells = [], []
        for projected_BG in projected_NG.split(steps.counts):
            alive = len(projected_BG)
            if alive < len(h):
                h, c = h[:alive], c[:alive]
            gates = torch.addmm(projected_BG, h, recurrent_HG).split(self.hidden, dim=1)
            i, f, new = gates[0], gates[-2], gates[-1]
            if peephole is not None:
                i, f = torch.addcmul(i, peephole[0], c), torch.addcmul(f, peephole[-1], c)
            c = torch.addcmul(torch.sigmoid(f) * c, torch.sigmoid(i), torch.tanh(new))
            h = torch.tanh(c)
            if self.output_gate:
                o = gates[1] if peephole is None else torch.addcmul(gates[1], peephole[1], c)
                h = torch.sigmoid(o) * h
            states.append(h)
            cells.append(c)
        return steps, states, cells

    def _as_onnx(
        self, x_BTD: Tensor, lengths_B: Tensor, first_cells_KBH: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        peephole = None if self.peephole is None else self._gates(self.peephole, 0.0)
        weights = self._gates(self.input_weight, 0.0), self._gates(self.hidden_weight, 0.0)
        bias = self._gates(self.bias, ALWAYS_OPEN)
        return onnx_lstm(x_BTD, lengths_B, *weights, bias, peephole, first_cells_KBH)

    def _gates(self, weight: Tensor, value: float) -> Tensor:
        """Rows of all of ONNX's gates [K, 4H, ...]; those of a missing output gate are `value`."""
        if self.output_gate:
            return weight
        gate = torch.full_like(weight[:, : self.hidden], value)
        return torch.cat([weight[:, : self.hidden], gate, weight[:, self.hidden :]], dim=1)


class RNN(nn.Module):
    """Simple recurrent layer, one direction: h_t = f(Wx x_t + Wh h_{t-1} + b), h_0 = 0."""

    def __init__(self, inputs: int, hidden: int, activation: Activation) -> None:
        """Weights start uniform in -0.01..0.01, the default of the library that the authors used; the bias at 0."""
        super().__init__()
        self.hidden, self.activation = hidden, activation
        self.input_weight = nn.Parameter(torch.empty(1, hidden, inputs).uniform_(-0.01, 0.01))
        self.hidden_weight = nn.Parameter(torch.empty(1, hidden, hidden).uniform_(-0.01, 0.01))
        self.bias = nn.Parameter(torch.zeros(1, hidden))

    def forward(self, x_BTD: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs [B, T, D], lengths [B] -> states [B, T, 1, H], zero on the padding; last states [B, 1, H]."""
        if torch.onnx.is_in_onnx_export():
            return self._as_onnx(x_BTD, lengths_B)
        function = _FUNCTIONS[self.activation]
        steps = Steps(lengths_B, x_BTD.shape[1])
        projected_NH = nn.functional.linear(steps.pack(x_BTD), self.input_weight[0], self.bias[0])
        recurrent_HH = self.hidden_weight[0].T
        h = x_BTD.new_zeros(steps.counts[0], self.hidden)
        states = []
        for projected_BH in projected_NH.split(steps.counts):
            h = function(torch.addmm(projected_BH, h[: len(projected_BH)], recurrent_HH))
            states.append(h)
        return _together([steps.unpack(states)], lengths_B)

    def _as_onnx(self, x_BTD: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        weights = self.input_weight, self.hidden_weight, self.bias
        return onnx_rnn(x_BTD, lengths_B, *weights, activation=self.activation)


def onnx_rnn(
    x_BTD: Tensor,
    lengths_B: Tensor,
    input_weight: Tensor,
    hidden_weight: Tensor,
    bias: Tensor,
    *,
    activation: Activation,
) -> tuple[Tensor, Tensor]:
    """The ONNX operator RNN, in an export only: weights [1, H, D], [1, H, H], [1, H].

    Returns states [B, T, 1, H] and last states [B, 1, H].
    """
    attributes: Attributes = {"hidden_size": hidden_weight.shape[2], "activations": [_ONNX_NAMES[activation]]}
    if activation == "identity":  # Affine is alpha x + beta
        attributes |= {"activation_alpha": [1.0], "activation_beta": [0.0]}
    both = torch.cat([bias, torch.zeros_like(bias)], dim=1)  # ONNX has a bias for each of the two products
    inputs = [x_BTD.transpose(0, 1), input_weight, hidden_weight, both, lengths_B.int()]
    states_BTKH, last_BKH = _recurrent_operator("RNN", inputs, attributes, states=2)
    return states_BTKH, last_BKH


def onnx_lstm(
    x_BTD: Tensor,
    lengths_B: Tensor,
    input_weight: Tensor,
    hidden_weight: Tensor,
    bias: Tensor,
    peephole: Tensor | None = None,
    first_cells_KBH: Tensor | None = None,
    *,
    linear: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The ONNX operator LSTM, in an export only: weights [K, 4H, D], [K, 4H, H], [K, 4H], [K, 3H], gates i, o, f, c.

    `linear` replaces both tanh by the identity. Returns states [B, T, K, H], last states [B, K, H]
    and last cells [K, B, H].
    """
    directions, hidden = hidden_weight.shape[0], hidden_weight.shape[2]
    attributes: Attributes = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
    if linear:
        attributes["activations"] = ["Sigmoid", "Affine", "Affine"] * directions
        # Sigmoid has neither alpha nor beta: these are the two Affines'.
        attributes["activation_alpha"] = [1.0, 1.0] * directions
        attributes["activation_beta"] = [0.0, 0.0] * directions
    both = torch.cat([bias, torch.zeros_like(bias)], dim=1)  # ONNX has a bias for each of the two products
    inputs: list[Tensor | None] = [x_BTD.transpose(0, 1), input_weight, hidden_weight, both, lengths_B.int()]
    inputs += [None, first_cells_KBH, peephole]  # its h starts at zero
    while inputs[-1] is None:
        inputs.pop()
    states_BTKH, last_BKH, last_cells_KBH = _recurrent_operator("LSTM", inputs, attributes, states=3)
    return states_BTKH, last_BKH, last_cells_KBH


def _recurrent_operator(
    name: str, inputs: Sequence[Tensor | None], attributes: Attributes, *, states: int
) -> list[Tensor]:
    """Emit it; states [B, T, K, H] and last states [B, K, H] of its Y and Y_h; an LSTM's Y_c [K, B, H] as it is."""
    x_TBD, recurrent_KGH = inputs[0], inputs[2]
    assert x_TBD is not None  # only the peepholes and first states may be missing
    assert recurrent_KGH is not None
    tokens, batch = x_TBD.shape[:2]
    directions, hidden = recurrent_KGH.shape[0], recurrent_KGH.shape[2]
    last_shape = [directions, batch, hidden]
    outputs = torch.onnx.ops.symbolic_multi_out(
        name,
        inputs,
        attributes,
        dtypes=[torch.float32] * states,
        shapes=[[tokens, directions, batch, hidden], *[last_shape] * (states - 1)],
    )
    return [outputs[0].permute(2, 0, 1, 3), outputs[1].transpose(0, 1), *outputs[2:]]


def _together(directions: Sequence[Tensor], lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """States [B, T, H] of each direction -> [B, T, K, H] and the last ones [B, K, H]."""
    states_BTKH = torch.stack(list(directions), dim=2)
    rows = torch.arange(len(lengths_B), device=lengths_B.device)
    last = [states_BTKH[rows, lengths_B - 1, 0], *(states_BTKH[:, 0, k] for k in range(1, len(directions)))]
    return states_BTKH, torch.stack(last, dim=1)
