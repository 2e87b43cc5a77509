"""Word averaging: the PARAGRAM-PHRASE model.

J. Wieting, M. Bansal, K. Gimpel, K. Livescu, "Towards Universal Paraphrastic Sentence Embeddings", ICLR 2016,
eq. 1:  g(x) = 1/n sum_i Ww[x_i].  Departures and scores: docs/papers/paragram_phrase.md.

Shapes: B batch, T tokens, D embedding dimensions.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from training.layers import mask


@dataclass(frozen=True)
class WordAveragingConfig:
    """There is nothing to choose but the word vectors, and how many of their values to drop."""

    name: ClassVar[str] = "word_averaging"
    dropout: float = 0.0  # of word vector values; the paper uses none, Wieting & Gimpel (2017) up to 0.4


class WordAveraging(nn.Module):
    """Mean of the word vectors of the real tokens."""

    def __init__(self, config: WordAveragingConfig, embedding: nn.Module) -> None:
        """Wrap the embedding of words."""
        super().__init__()
        self.embedding = embedding
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1) -> embeddings [B, D] (eq. 1)."""
        words_BTD = self.dropout(self.embedding(input_ids_BT))
        weights_BT = mask(lengths_B, input_ids_BT.shape[1]) / lengths_B[:, None].float()
        # A product of matrices rather than multiply and sum: in ONNX Runtime a third faster, and (in all but a few
        # sizes) the same bits however far the batch is padded.
        return torch.bmm(weights_BT[:, None, :], words_BTD).squeeze(1)
