"""The gated recurrent averaging network (GRAN) and its variants.

J. Wieting, K. Gimpel, "Revisiting Recurrent Networks for Paraphrastic Sentence Embeddings", ACL 2017, section 3.1.
x_t are word vectors, h_t the states of an LSTM with peepholes over them (recurrent.py), and each gate is
s(u) = sigmoid(u) with matrices of its own:
    GRAN    a_t = x_t * s(Wx x_t + Wh h_t + b),  g = 1/n sum_t a_t                                             (eq. 1)
    without its gate (footnote 2)  a_t = tanh(Wx x_t + Wh h_t + b),  g = 1/n sum_t a_t
    GRAN-2  a_t = h_t * s(Wx x_t + Wh h_t + b),  g = 1/n sum_t a_t
    GRAN-3  a_t = x_t * s(Wx1 x_t + Wh1 h_t + b1) + a_{t-1} * s(Wx2 x_t + Wh2 h_t + b2),  a_0 = 0,  g = a_n / n
    GRAN-4  as GRAN-3, with Wa1 a_{t-1} and Wa2 a_{t-1} inside the two gates
    GRAN-5  a_t = x_t * s(Wx1 x_t + Wh1 h_t + b1) + h_t * s(Wx2 x_t + Wh2 h_t + b2),  g = 1/n sum_t a_t
    BiGRAN  a_t of eq. 1 in each direction with gates of its own, added or through a tanh layer, averaged.
Departures and scores: docs/papers/gran.md.

Shapes: B batch, T tokens, D embedding dimensions, H hidden, K directions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from training.models.layers import WordNoise, mask, masked_mean, width
from training.models.recurrent import ALWAYS_OPEN, LSTM, Steps, at_real_tokens, onnx_lstm

Variant = Literal[1, 2, 3, 4, 5]


@dataclass(frozen=True)
class GRANConfig:
    """Which of the paper's gated averages."""

    name: ClassVar[str] = "gran"
    additive: ClassVar[bool] = False
    variant: Variant = 1
    gated: bool = True  # False: variant 1 without its gate (footnote 2)
    bidirectional: bool = False  # BiGRAN, both directions added; of variant 1 only
    dropout: float = 0.0
    word_dropout: float = 0.0


class GRAN(nn.Module):
    """Average of gated word vectors (or LSTM states); the gates depend on the context."""

    def __init__(self, config: GRANConfig, embedding: nn.Module) -> None:
        """The LSTM is as wide as the words. Gates start Gaussian (0.1), their biases at 0, as in the release."""
        super().__init__()
        inputs = width(embedding)
        self.variant, self.gated, self.output_dim = config.variant, config.gated, inputs
        self.embedding = embedding
        self.noise = WordNoise(config.dropout, config.word_dropout)
        self.lstm = LSTM(inputs, inputs, bidirectional=config.bidirectional)
        if config.variant in (3, 4):
            self.gates = nn.ModuleList([_GatedSum(inputs, looks_back=config.variant == 4)])
        else:
            values = inputs * (2 if config.variant == 5 else 1)
            activation = torch.sigmoid if config.gated else torch.tanh
            self.gates = nn.ModuleList([_Gate(inputs, values, activation) for _ in range(self.lstm.directions)])

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, D]."""
        x_BTD = self.noise(self.embedding(input_ids_BT))
        h_BTKH, _ = self.lstm(x_BTD, lengths_B)
        if self.variant in (3, 4):
            _, last_BD = self.gates[0](x_BTD, h_BTKH[:, :, 0], lengths_B)
            return last_BD / lengths_B[:, None].float()
        return masked_mean(at_real_tokens(self._averaged, lengths_B, x_BTD, h_BTKH.flatten(2)), lengths_B)

    @property
    def has_token_parts(self) -> bool:
        """Whether the embedding is a mean of gated word vectors, one for each word: variants 1, 3 and 4, and
        BiGRAN. Variants 2 and 5 average states, which depend on several words."""
        return self.variant in (1, 3, 4) and self.gated

    def token_parts(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Each word vector times its gates [B, T, D]; the embedding is their mean over the real tokens.

        In variants 3 and 4 a word is also multiplied by the gates on the running sum at every later word.

        Raises:
            ValueError: the variant averages states.
        """
        if not self.has_token_parts:
            raise ValueError("only averages of gated words are a sum over words")
        x_BTD = self.noise(self.embedding(input_ids_BT))
        h_BTKH, _ = self.lstm(x_BTD, lengths_B)
        if self.variant in (3, 4):
            parts: Tensor = self.gates[0].parts(x_BTD, h_BTKH[:, :, 0], lengths_B)  # type: ignore[operator]
            return parts
        return at_real_tokens(self._averaged, lengths_B, x_BTD, h_BTKH.flatten(2))

    def _averaged(self, x_D: Tensor, states_KH: Tensor) -> Tensor:
        """What variants 1, 2 and 5 average, at each token: x_t [..., D], h_t [..., K * H] -> a_t [..., D or H]."""
        states = states_KH.split(self.lstm.hidden, dim=-1)
        a = [self._gated(x_D, h_H, gate(x_D, h_H)) for gate, h_H in zip(self.gates, states, strict=True)]
        return a[0] + a[1] if len(a) == 2 else a[0]

    def _gated(self, x_D: Tensor, h_H: Tensor, gate_G: Tensor) -> Tensor:
        if self.variant == 1:
            return x_D * gate_G if self.gated else gate_G
        if self.variant == 2:
            return h_H * gate_G
        on_words, on_states = gate_G.chunk(2, dim=-1)
        return x_D * on_words + h_H * on_states


class _Gate(nn.Module):
    """sigmoid(Wx x_t + Wh h_t + b), of one gate or of two side by side; or another function of the sum."""

    def __init__(self, inputs: int, outputs: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.activation = activation
        self.words = _gaussian(nn.Linear(inputs, outputs))
        self.states = _gaussian(nn.Linear(inputs, outputs, bias=False))

    def forward(self, x_BTD: Tensor, h_BTH: Tensor) -> Tensor:
        return self.activation(self.words(x_BTD) + self.states(h_BTH))


class _GatedSum(nn.Module):
    """a_n of GRAN-3 and GRAN-4.

    It is exported as an LSTM with the identity instead of both tanh and an output gate that is always open: input gate
    on x_t, forget gate on a_{t-1}.
    """

    def __init__(self, inputs: int, *, looks_back: bool) -> None:
        super().__init__()
        self.inputs = inputs
        self.words = _gaussian(nn.Linear(inputs, 2 * inputs))
        self.states = _gaussian(nn.Linear(inputs, 2 * inputs, bias=False))
        self.sums = _gaussian(nn.Linear(inputs, 2 * inputs, bias=False)) if looks_back else None

    def forward(self, x_BTD: Tensor, h_BTH: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """The sums a_t [B, T, D], and each sentence's last one [B, D]."""
        if torch.onnx.is_in_onnx_export():
            return self._as_onnx(x_BTD, h_BTH, lengths_B)
        steps = Steps(lengths_B, x_BTD.shape[1])
        x_ND = steps.pack(x_BTD)
        gates_NG = self.words(x_ND) + self.states(steps.pack(h_BTH))
        a = x_BTD.new_zeros(steps.counts[0], self.inputs)
        sums = []
        for x_BD, gates_BG in zip(x_ND.split(steps.counts), gates_NG.split(steps.counts), strict=True):
            a = a[: len(x_BD)]
            inside = gates_BG if self.sums is None else gates_BG + self.sums(a)
            on_words, on_sum = torch.sigmoid(inside).chunk(2, dim=1)
            a = x_BD * on_words + a * on_sum
            sums.append(a)
        rows = torch.arange(len(lengths_B), device=lengths_B.device)
        sums_BTD = steps.unpack(sums)
        return sums_BTD, sums_BTD[rows, lengths_B - 1]

    def parts(self, x_BTD: Tensor, h_BTH: Tensor, lengths_B: Tensor) -> Tensor:
        """The share of each word in the last sum [B, T, D]: x_t times its gate and all later gates on the sum."""
        sums_BTD, _ = self(x_BTD, h_BTH, lengths_B)
        inside_BTG = self.words(x_BTD) + self.states(h_BTH)
        if self.sums is not None:
            before_BTD = torch.cat([torch.zeros_like(sums_BTD[:, :1]), sums_BTD[:, :-1]], dim=1)
            inside_BTG = inside_BTG + self.sums(before_BTD)
        on_words_BTD, on_sum_BTD = inside_BTG.chunk(2, dim=-1)
        # log(sigmoid(x)) so that a graph does not take the logarithm of a gate that rounds to 0.
        kept_BTD = on_sum_BTD.clamp(max=0.0) - torch.log1p(torch.exp(-on_sum_BTD.abs()))
        kept_BTD = kept_BTD * mask(lengths_B, x_BTD.shape[1])[:, :, None]
        until_end_BTD = kept_BTD.flip(1).cumsum(1).flip(1)
        # of the later words only
        until_end_BTD = torch.cat([until_end_BTD[:, 1:], torch.zeros_like(until_end_BTD[:, :1])], dim=1)
        return x_BTD * torch.sigmoid(on_words_BTD) * torch.exp(until_end_BTD)

    def _as_onnx(self, x_BTD: Tensor, h_BTH: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        size = self.inputs
        both = torch.cat([self.words.weight, self.states.weight], dim=1)
        nothing = torch.zeros_like(both[:size])
        copy = torch.cat([torch.eye(size), torch.zeros_like(self.states.weight[:size])], dim=1)
        weight = torch.cat([both[:size], nothing, both[size:], copy])  # i, o, f, c
        none = torch.zeros_like(self.words.weight[:size])
        seen = torch.cat([none, none]) if self.sums is None else self.sums.weight
        recurrent = torch.cat([seen[:size], none, seen[size:], none])
        zero = torch.zeros_like(self.words.bias[:size])
        bias = torch.cat([self.words.bias[:size], zero + ALWAYS_OPEN, self.words.bias[size:], zero])
        seen_BTX = torch.cat([x_BTD, h_BTH], dim=2)
        sums_BTKD, last_BKD, _ = onnx_lstm(seen_BTX, lengths_B, weight[None], recurrent[None], bias[None], linear=True)
        return sums_BTKD.squeeze(2), last_BKD.squeeze(1)


def _gaussian(layer: nn.Linear) -> nn.Linear:
    nn.init.normal_(layer.weight, std=0.1)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
