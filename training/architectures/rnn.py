"""The simple recurrent network, and the identity-RNN that starts as word averaging.

J. Wieting, M. Bansal, K. Gimpel, K. Livescu, "Towards Universal Paraphrastic Sentence Embeddings", ICLR 2016,
section 3:
    RNN:   h_t = f(Wx Ww[x_t] + Wh h_{t-1} + b),   g(x) = h_n,   f = tanh or ReLU;
    iRNN:  the same with f = identity, g(x) = h_n / n, started at Wx = Wh = I and b = 0.
The iRNN is regularised towards its start: `RegulariserConfig(universal=...)`, the penalty towards where a run began.
Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, H hidden.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from training.architectures.parts.layers import WordNoise, width
from training.architectures.parts.recurrent import RNN, Activation


@dataclass(frozen=True)
class RNNConfig:
    """Wieting et al. tuned the activation over tanh and ReLU; `identity` makes it the identity-RNN."""

    name: ClassVar[str] = "rnn"
    activation: Activation = "tanh"
    hidden: int | None = None  # None: as wide as the word vectors, as in the paper
    dropout: float = 0.0
    word_dropout: float = 0.0


class RNNEncoder(nn.Module):
    """The state at the last word; for the identity-RNN divided by the number of words."""

    def __init__(self, config: RNNConfig, embedding: nn.Module) -> None:
        """Wrap the embedding of words.

        Raises:
            ValueError: an identity-RNN of another width than the word vectors.
        """
        super().__init__()
        inputs = width(embedding)
        self.output_dim = config.hidden or inputs
        self.embedding = embedding
        self.noise = WordNoise(config.dropout, config.word_dropout)
        self.rnn = RNN(inputs, self.output_dim, config.activation)
        self.averages = config.activation == "identity"
        if self.averages:
            if self.output_dim != inputs:
                raise ValueError(f"an identity-RNN is as wide as its words: hidden {config.hidden}, words {inputs}")
            with torch.no_grad():
                for weight in (self.rnn.input_weight, self.rnn.hidden_weight):
                    weight.copy_(torch.eye(inputs)[None])

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, H]."""
        _, last_BKH = self.rnn(self.noise(self.embedding(input_ids_BT)), lengths_B)
        last_BH: Tensor = last_BKH.squeeze(1)
        return last_BH / lengths_B[:, None].float() if self.averages else last_BH
