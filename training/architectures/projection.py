"""Word averaging followed by one linear projection.

J. Wieting, M. Bansal, K. Gimpel, K. Livescu, "Towards Universal Paraphrastic Sentence Embeddings", ICLR 2016,
section 3:  g(x) = Wp (1/n sum_i Ww[x_i]) + b.  Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, D embedding dimensions.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from training.architectures.parts.layers import masked_mean, width


@dataclass(frozen=True)
class ProjectionConfig:
    """The width of the sentence vector; the study of features for other models also takes 1200 and 2400."""

    name: ClassVar[str] = "projection"
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
        mean_BD = masked_mean(self.embedding(input_ids_BT), lengths_B)
        embeddings: Tensor = self.projection(mean_BD)
        return embeddings
