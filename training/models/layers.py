"""Layers that several architectures share.

Shapes: B batch, T tokens, D embedding dimensions, V token ids.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from training.data.words.tables import Matrix


def mask(lengths_B: Tensor, tokens: int) -> Tensor:
    """Float [B, T]: 1 on real tokens, 0 on padding."""
    return (torch.arange(tokens, device=lengths_B.device)[None, :] < lengths_B[:, None]).float()


def width(embedding: nn.Module) -> int:
    """Dimensions of the vectors an embedding gives."""
    dim = embedding.embedding_dim
    assert isinstance(dim, int)
    return dim


def masked_mean(values_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """Mean over the real tokens: values [B, T, D], lengths [B] -> [B, D]."""
    weights_BT = mask(lengths_B, values_BTD.shape[1]) / lengths_B[:, None].float()
    # A matrix product instead of multiply and sum: a third faster in ONNX Runtime, and (for nearly all sizes) bit-equal
    # for any padding of the batch.
    return torch.bmm(weights_BT[:, None, :], values_BTD).squeeze(1)


class WordNoise(nn.Module):
    """Dropout of single values of word vectors [B, T, D], then of whole word vectors; kept values are scaled up.

    Wieting & Gimpel (2017), section 4.2. A dropped word is zero but still counts in a mean, as in their release.
    """

    def __init__(self, dropout: float, word_dropout: float) -> None:
        """Both are probabilities of being dropped."""
        super().__init__()
        self.dropout, self.word_dropout = dropout, word_dropout

    def forward(self, words_BTD: Tensor) -> Tensor:
        """Apply the noise in training only."""
        if not self.training:
            return words_BTD
        words_BTD = _dropped(words_BTD, self.dropout, words_BTD.shape)
        return _dropped(words_BTD, self.word_dropout, (*words_BTD.shape[:2], 1))


def _dropped(values: Tensor, rate: float, shape: Sequence[int]) -> Tensor:
    # Takes a third of the time of torch's dropout on a CPU, whose Bernoulli draws are slower than uniform ones.
    return values if rate == 0.0 else values * (torch.rand(shape, device=values.device) >= rate) / (1.0 - rate)


class WordEmbedding(nn.Module):
    """Trainable rows [V, D] with sparse gradients, and a copy of their start.

    `start` is Ww0 of the regulariser ||Ww0 - Ww||^2 (Wieting et al. 2016, eq. 1).
    """

    start: Tensor

    def __init__(self, rows: Matrix) -> None:
        """Copy the rows of the word table."""
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(rows.copy()))
        self.register_buffer("start", torch.from_numpy(rows.copy()), persistent=False)
        self.embedding_dim = rows.shape[1]

    def forward(self, input_ids_BT: Tensor) -> Tensor:
        """Ids [B, T] -> vectors [B, T, D]."""
        return nn.functional.embedding(input_ids_BT, self.weight, sparse=True)

    def distance_from_start(self, input_ids: Tensor) -> Tensor:
        """Sum over the distinct ids of ||row - start||^2; other rows get no gradient."""
        ids = torch.unique(input_ids)
        return ((self(ids) - self.start[ids]) ** 2).sum()
