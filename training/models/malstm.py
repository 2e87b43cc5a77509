"""MaLSTM: one LSTM reads both sentences, and exp(-L1) of its last states is the similarity.

J. Mueller, A. Thyagarajan, "Siamese Recurrent Architectures for Learning Sentence Similarity", AAAI 2016, "The MaLSTM
model": 50 units, tied weights, forget bias 2.5, no peepholes,
    h_a = LSTM(a)_n,  h_b = LSTM(b)_n,  g = exp(-||h_a - h_b||_1).
The encoder is the LSTM of `training.models.lstm` with these settings, so it has no module of its own. Its loss
is in `training.objectives.manhattan`, its calibration in `training.publish.calibrate`, its support vector machine in
`training.models.svm`. Departures and scores: docs/papers/malstm.md.

Shapes: B batch, D embedding dimensions.
"""

import torch
from torch import Tensor

from training.models.lstm import LSTMConfig

MALSTM = LSTMConfig(hidden=50, peepholes=False, forget_bias=2.5)


def manhattan_similarity(a_BD: Tensor, b_BD: Tensor) -> Tensor:
    """g = exp(-||a - b||_1) of each pair of rows: [B, D], [B, D] -> [B] in (0, 1]."""
    return torch.exp(-(a_BD - b_BD).abs().sum(dim=1))


def cosine_similarity(a_BD: Tensor, b_BD: Tensor) -> Tensor:
    """The cosine of each pair of rows, [B] in -1..1: what the paper argues against."""
    return torch.nn.functional.cosine_similarity(a_BD, b_BD, dim=1)


SIMILARITIES = {"exp_l1": manhattan_similarity, "cosine": cosine_similarity}  # by their names in the contract
