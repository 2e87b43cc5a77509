"""Encoders of the mean of the word vectors: word averaging (PARAGRAM-PHRASE), a projection, a deep averaging network.

J. Wieting, M. Bansal, K. Gimpel, K. Livescu, "Towards Universal Paraphrastic Sentence Embeddings", ICLR 2016, sec. 3:
    averaging   g(x) = 1/n sum_i Ww[x_i]
    projection  g(x) = Wp (1/n sum_i Ww[x_i]) + b
    DAN         g(x) = tanh(W (1/n sum_i Ww[x_i]) + b)
DAN: M. Iyyer, V. Manjunatha, J. Boyd-Graber, H. Daume III, "Deep Unordered Composition Rivals Syntactic Methods for
Text Classification", ACL 2015. Wieting et al. tuned over one and two layers, and over tanh and ReLU; this is their
release's network. Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, D embedding dimensions.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from training.models.layers import WordNoise, masked_mean, width


@dataclass(frozen=True)
class WordAveragingConfig:
    """There is nothing to choose but the word vectors, and how much of them to drop."""

    name: ClassVar[str] = "word_averaging"
    additive: ClassVar[bool] = True
    dropout: float = 0.0  # of word vector values; the paper uses none, Wieting & Gimpel (2017) up to 0.6
    word_dropout: float = 0.0  # of whole word vectors, likewise


class WordAveraging(nn.Module):
    """Mean of the word vectors of the real tokens."""

    def __init__(self, config: WordAveragingConfig, embedding: nn.Module) -> None:
        """Wrap the embedding of words."""
        super().__init__()
        self.embedding = embedding
        self.noise = WordNoise(config.dropout, config.word_dropout)
        self.output_dim = width(embedding)

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, D]."""
        return masked_mean(self.noise(self.embedding(input_ids_BT)), lengths_B)


@dataclass(frozen=True)
class ProjectionConfig:
    """The width of the sentence vector; the study of features for other models also takes 1200 and 2400."""

    name: ClassVar[str] = "projection"
    additive: ClassVar[bool] = True
    outputs: int | None = None  # None: as wide as the word vectors, as in the paper


class Projection(nn.Module):
    """A linear map of the mean of the word vectors."""

    def __init__(self, config: ProjectionConfig, embedding: nn.Module) -> None:
        """Weights start as Glorot & Bengio (2010), uniform; the bias at 0: the release's default."""
        super().__init__()
        self.embedding = embedding
        inputs = width(embedding)
        self.output_dim = config.outputs or inputs
        self.projection = nn.Linear(inputs, self.output_dim)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, outputs]."""
        embeddings: Tensor = self.projection(masked_mean(self.embedding(input_ids_BT), lengths_B))
        return embeddings


@dataclass(frozen=True)
class DANConfig:
    """There is nothing to choose but the word vectors."""

    name: ClassVar[str] = "dan"
    additive: ClassVar[bool] = False


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
        embeddings: Tensor = self.layers(masked_mean(self.embedding(input_ids_BT), lengths_B))
        return embeddings
