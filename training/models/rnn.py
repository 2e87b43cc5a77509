"""The simple recurrent network, and the identity-RNN that starts as word averaging.

J. Wieting, M. Bansal, K. Gimpel, K. Livescu, "Towards Universal Paraphrastic Sentence Embeddings", ICLR 2016,
section 3:
    RNN:   h_t = f(Wx Ww[x_t] + Wh h_{t-1} + b),   g(x) = h_n,   f = tanh;
    iRNN:  the same with f = identity, g(x) = h_n / n, started at Wx = Wh = I and b = 0.
The iRNN is regularised towards its start: `RegulariserConfig(universal=...)`, the penalty towards where a run began.
Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, H hidden.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from training.models.layers import width
from training.models.recurrent import RNN, Activation

INPUT = 0.05  # times the identity: small, so that tanh is nearly linear for the sums of a sentence's words


@dataclass(frozen=True)
class RNNConfig:
    """`identity` makes it the identity-RNN; Wieting et al. also tried ReLU."""

    name: ClassVar[str] = "rnn"
    additive: ClassVar[bool] = False
    activation: Activation = "tanh"
    # Hidden weights start at so many times the identity, input weights at `INPUT` times it. 0: at random, as in the
    # paper; so small that the last word is nearly all that is left of a sentence.
    memory: float = 0.0


class RNNEncoder(nn.Module):
    """The state at the last word; for the identity-RNN divided by the number of words."""

    def __init__(self, config: RNNConfig, embedding: nn.Module) -> None:
        """Wrap the embedding of words; the hidden states are as wide as it is."""
        super().__init__()
        self.output_dim = width(embedding)
        self.embedding = embedding
        self.rnn = RNN(self.output_dim, self.output_dim, config.activation)
        self.averages = config.activation == "identity"
        memory, words = (1.0, 1.0) if self.averages else (config.memory, INPUT)
        if memory:
            identity = torch.eye(self.output_dim)[None]
            with torch.no_grad():
                self.rnn.hidden_weight.copy_(memory * identity)
                self.rnn.input_weight.copy_(words * identity)

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, H]."""
        _, last_BKH = self.rnn(self.embedding(input_ids_BT), lengths_B)
        last_BH: Tensor = last_BKH.squeeze(1)
        return last_BH / lengths_B[:, None].float() if self.averages else last_BH
