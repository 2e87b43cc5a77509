"""Word averaging: the PARAGRAM-PHRASE model.

J. Wieting, M. Bansal, K. Gimpel, K. Livescu, "Towards Universal Paraphrastic Sentence Embeddings", ICLR 2016,
eq. 1:  g(x) = 1/n sum_i Ww[x_i].  Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, D embedding dimensions.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from training.architectures.parts.layers import WordNoise, masked_mean, width


@dataclass(frozen=True)
class WordAveragingConfig:
    """There is nothing to choose but the word vectors, and how much of them to drop."""

    name: ClassVar[str] = "word_averaging"
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
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, D] (eq. 1)."""
        return masked_mean(self.noise(self.embedding(input_ids_BT)), lengths_B)
