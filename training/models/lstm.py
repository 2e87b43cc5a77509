"""LSTM encoders: the last state, or the mean of all states (LSTM-AVG), in one or both directions.

J. Wieting, M. Bansal, K. Gimpel, K. Livescu, "Towards Universal Paraphrastic Sentence Embeddings", ICLR 2016, section
3, with and without the output gate; J. Wieting, K. Gimpel, "Revisiting Recurrent Networks for Paraphrastic Sentence
Embeddings", ACL 2017, sections 3.1 and 4.1.3 (LSTM-AVG) and 4.2 (BiLSTM-AVG):
    LSTM:        g(x) = h_n
    LSTM-AVG:    g(x) = 1/n sum_t h_t
    BiLSTM-AVG:  h_t = h>_t + h<_t  or  h_t = tanh(W [h>_t; h<_t] + b), averaged.
The cell's equations are in training/models/recurrent.py. Departures and scores: docs/papers/gran.md.

Shapes: B batch, T tokens, K directions, H hidden.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from training.models.layers import WordNoise, masked_mean, width
from training.models.recurrent import LSTM, at_real_tokens


@dataclass(frozen=True)
class LSTMConfig:
    """Which of the papers' LSTM encoders."""

    name: ClassVar[str] = "lstm"
    additive: ClassVar[bool] = False
    pooling: Literal["last", "mean"] = "last"
    bidirectional: bool = False  # the two directions are added
    output_gate: bool = True
    peepholes: bool = True
    hidden: int | None = None  # None: as wide as the word vectors, as in the papers
    forget_bias: float = 0.0
    layers: int = 1  # LSTMs one above the other, each reading the (added) states of the one below
    scale: float = 1.0  # the embedding is multiplied by it: a head wants larger values than states below 1 give it
    dropout: float = 0.0
    word_dropout: float = 0.0


class LSTMEncoder(nn.Module):
    """Last or mean state of an LSTM with peepholes."""

    def __init__(self, config: LSTMConfig, embedding: nn.Module) -> None:
        """Wrap the embedding of words."""
        super().__init__()
        inputs = width(embedding)
        self.output_dim = config.hidden or inputs
        self.embedding = embedding
        self.noise = WordNoise(config.dropout, config.word_dropout)
        self.lstm = self._layer(config, inputs)
        self.above = nn.ModuleList([self._layer(config, self.output_dim) for _ in range(config.layers - 1)])
        self.pooling, self.scale = config.pooling, config.scale

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, H]."""
        words_BTD = self.embedding(input_ids_BT)
        states_BTKH, last_BKH = self.lstm(self.noise(words_BTD), lengths_B)
        for layer in self.above:
            below_BTH = at_real_tokens(self._added, lengths_B, states_BTKH.flatten(2))
            states_BTKH, last_BKH = layer(below_BTH, lengths_B)
        if self.pooling == "last":
            embedding_BH = self._added(last_BKH.flatten(1))
        else:
            embedding_BH = masked_mean(at_real_tokens(self._added, lengths_B, states_BTKH.flatten(2)), lengths_B)
        return embedding_BH if self.scale == 1.0 else self.scale * embedding_BH

    def _layer(self, config: LSTMConfig, inputs: int) -> LSTM:
        return LSTM(
            inputs,
            self.output_dim,
            peepholes=config.peepholes,
            output_gate=config.output_gate,
            bidirectional=config.bidirectional,
            forget_bias=config.forget_bias,
        )

    def _added(self, states_KH: Tensor) -> Tensor:
        """States [..., K * H] of the directions -> [..., H]."""
        first, *second = states_KH.split(self.output_dim, dim=-1)
        return first + second[0] if second else first
