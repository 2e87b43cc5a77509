"""Deep averaging network: a feed-forward network on the mean of the word vectors.

M. Iyyer, V. Manjunatha, J. Boyd-Graber, H. Daume III, "Deep Unordered Composition Rivals Syntactic Methods for Text
Classification", ACL 2015, as used by Wieting et al. (ICLR 2016), section 3:
    g(x) = tanh(W (1/n sum_i Ww[x_i]) + b).
They tuned over one and two layers, and over tanh and ReLU; this is the network of their release.
Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, D embedding dimensions.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from training.architectures.parts.layers import masked_mean, width


@dataclass(frozen=True)
class DANConfig:
    """There is nothing to choose but the word vectors."""

    name: ClassVar[str] = "dan"


class DAN(nn.Module):
    """One layer, as wide as the word vectors, on their mean."""

    def __init__(self, config: DANConfig, embedding: nn.Module) -> None:
        """Weights start Gaussian (0.1), the bias at 0: as the release."""
        super().__init__()
        self.embedding = embedding
        self.output_dim = width(embedding)
        layer = nn.Linear(self.output_dim, self.output_dim)
        nn.init.normal_(layer.weight, std=0.1)
        nn.init.zeros_(layer.bias)
        self.layers = nn.Sequential(layer, nn.Tanh())

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, D]."""
        mean_BD = masked_mean(self.embedding(input_ids_BT), lengths_B)
        embeddings: Tensor = self.layers(mean_BD)
        return embeddings
