"""Deep averaging network: a feed-forward network on the mean of the word vectors.

M. Iyyer, V. Manjunatha, J. Boyd-Graber, H. Daume III, "Deep Unordered Composition Rivals Syntactic Methods for Text
Classification", ACL 2015, as used by Wieting et al. (ICLR 2016), section 3:
    z_0 = 1/n sum_i Ww[x_i],   z_k = f(W_k z_{k-1} + b_k),   g(x) = z_K,   K = 1 or 2, f = tanh or ReLU.
Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, D embedding dimensions.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

from torch import Tensor, nn

from training.architectures.parts.layers import WordNoise, masked_mean, width


@dataclass(frozen=True)
class DANConfig:
    """Wieting et al. tuned the number of layers over 1 and 2, and the activation over tanh and ReLU."""

    name: ClassVar[str] = "dan"
    layers: int = 1
    activation: Literal["tanh", "relu"] = "tanh"
    hidden: int | None = None  # None: as wide as the word vectors, as in the paper
    dropout: float = 0.0
    word_dropout: float = 0.0


class DAN(nn.Module):
    """Layers of f(Wz + b), the first one on the mean of the word vectors."""

    def __init__(self, config: DANConfig, embedding: nn.Module) -> None:
        """The first layer starts Gaussian (0.1), others as Glorot & Bengio (2010), biases at 0: as the release.

        Raises:
            ValueError: fewer than 1 layer.
        """
        super().__init__()
        if config.layers < 1:
            raise ValueError(f"a deep averaging network has at least 1 layer, got layers={config.layers}")
        self.embedding = embedding
        self.noise = WordNoise(config.dropout, config.word_dropout)
        inputs = width(embedding)
        self.output_dim = config.hidden or inputs
        widths = [inputs, *[self.output_dim] * config.layers]
        layers = [nn.Linear(inside, outside) for inside, outside in pairwise(widths)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.normal_(layers[0].weight, std=0.1)
        activation = nn.Tanh if config.activation == "tanh" else nn.ReLU
        self.layers = nn.Sequential(*[part for layer in layers for part in (layer, activation())])

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, hidden]."""
        mean_BD = masked_mean(self.noise(self.embedding(input_ids_BT)), lengths_B)
        embeddings: Tensor = self.layers(mean_BD)
        return embeddings
