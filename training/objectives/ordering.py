"""Order of pairs: a pair that is labelled more alike than another should have the higher score.

J. Su, "CoSENT: a more effective sentence embedding than Sentence-BERT", 2022 (kexue.fm/archives/8847), eq. 6: the
logarithm of 1 + sum over such two pairs i, j of exp(lambda (s_j - s_i)). It bounds the share of pairs in the wrong
order, whatever the scale of labels and scores; of labels 0 and 1 that is 1 - AUC.

Shapes: B pairs.
"""

import torch
from torch import Tensor

SHARPNESS = 20.0  # lambda, as there


def ordering_loss(scores_B: Tensor, targets_B: Tensor, groups_B: Tensor | None = None) -> Tensor:
    """The loss of a batch; 0 where no two pairs can be compared.

    Args:
        scores_B: of the model, some units apart at most 1.
        targets_B: labels or ratings, higher is more alike.
        groups_B: numbers; only pairs of one group are compared. None: all are.
    """
    above = targets_B[:, None] > targets_B[None, :]
    if groups_B is not None:
        above = above & (groups_B[:, None] == groups_B[None, :])
    wrong = SHARPNESS * (scores_B[None, :] - scores_B[:, None])[above]
    return torch.logsumexp(torch.cat([wrong, scores_B.new_zeros(1)]), dim=0) + 0.0 * scores_B.sum()
