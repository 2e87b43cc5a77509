"""Order of pairs: a pair that is labelled more alike than another should have the higher score.

C. Burges et al., "Learning to Rank using Gradient Descent", ICML 2005 (RankNet), eq. 3: of two such pairs i, j the
logistic loss of the difference of their scores, log(1 + exp(lambda (s_j - s_i))), here the mean over all of a batch.
Whatever the scales of labels and scores, it is a smooth form of the share of pairs in the wrong order; of labels 0 and
1 that share is 1 - AUC. The sum inside one logarithm (J. Su, CoSENT, 2022) follows the few worst pairs of a batch,
which with noisy labels are the mislabelled ones: on labelled pairs of Twitter it was worse on development pairs.

Shapes: B pairs.
"""

import torch
from torch import Tensor

SHARPNESS = 10.0  # lambda: scores are in -1..1


def ordering_loss(scores_B: Tensor, targets_B: Tensor, groups_B: Tensor | None = None) -> Tensor:
    """The loss of a batch; 0 where no two pairs can be compared.

    Args:
        scores_B: of the model.
        targets_B: labels or ratings, higher is more alike.
        groups_B: numbers; only pairs of one group are compared. None: all are.
    """
    above = targets_B[:, None] > targets_B[None, :]
    if groups_B is not None:
        above = above & (groups_B[:, None] == groups_B[None, :])
    wrong = SHARPNESS * (scores_B[None, :] - scores_B[:, None])[above]
    compared = max(wrong.numel(), 1)
    return torch.nn.functional.softplus(wrong).sum() / compared + 0.0 * scores_B.sum()
