"""A small transformer learns the vectors of a large one, and their products within a batch.

Loss: 1 - cosine to the teacher's vector, and ten times the mean squared difference of the two matrices of cosines. Not
from a paper; the second term is that of `training.objectives.teacher_cosine`. The texts of a batch are of like length.

Afterwards `AnswersObjective`: questions find their own answers among those of the batch, in the teacher's order.

Shapes: B texts, D dimensions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, kl_div, log_softmax, normalize

from training.models.kinds import SiameseModel
from training.objectives.batches import Indices, Sentences
from training.objectives.development import GradedSets
from training.objectives.losses import cosine_matrix_loss, total_of
from training.objectives.objective import GradedObjective

PRODUCTS = 10.0  # weight of the products
WINDOW = 50  # batches whose texts are ordered by length together
SHARPNESS = 20.0  # of cosines before the softmax over a batch's answers
COSINE_WEIGHT = 5.0  # weight of 1 - cosine to the teacher beside it
ORDER = 0.7  # weight of the teacher's order of a batch's answers; the rest is that of the right answer


@dataclass(eq=False)
class ImitationObjective(GradedObjective):
    """The loss on a teacher's vectors."""

    model: SiameseModel
    sentences: Sentences
    teacher: npt.NDArray[np.float16]  # [n, D]: its vectors of the n sentences
    development: GradedSets
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        super().__init__(len(self.sentences), self.batch_size, self.seed, drop_last=True)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """Windows of a random order, each sorted by length and cut into batches, which come in random order."""
        rng = np.random.default_rng((self.seed, epoch))
        order = rng.permutation(len(self.sentences))[: self.steps() * self.batch_size]
        for start in range(0, len(order), WINDOW * self.batch_size):
            window = order[start : start + WINDOW * self.batch_size]
            window = window[np.argsort(self.sentences.lengths[window], kind="stable")]
            for batch in rng.permutation(len(window) // self.batch_size):
                yield window[batch * self.batch_size : (batch + 1) * self.batch_size]

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """The weighted sum of both terms, and each of them."""
        student = self.model.encode(self.sentences.batch(batch))
        target = torch.from_numpy(self.teacher[batch]).to(student.device).float()
        return total_of(
            {
                "vectors": (1 - cosine_similarity(student, target)).mean(),
                "products": PRODUCTS * cosine_matrix_loss(student, target),
            }
        )


@dataclass(eq=False)
class AnswersObjective(GradedObjective):
    """Each question's own answer among those of the batch, both ways, while vectors stay near the teacher's.

    Softmax over the batch: M. Henderson et al., "Efficient Natural Language Response Suggestion for Smart Reply", 2017,
    section 4.4. Not counted as wrong is what the teacher rates above the right one (A. Solatorio, GISTEmbed, 2024).
    Beside it, and more, counts the divergence from the teacher's own softmax over the batch.
    """

    model: SiameseModel
    sentences: Sentences
    teacher: npt.NDArray[np.float16]  # [n, D]: its vectors of the n sentences
    pairs: Indices  # [p, 2]: places of a question and its answer among the sentences
    development: GradedSets
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        super().__init__(len(self.pairs), self.batch_size, self.seed, drop_last=True)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """The weighted sum of both terms, and each of them."""
        sides = [self.pairs[batch, side] for side in (0, 1)]
        q, a = (self.model.encode(self.sentences.batch(side)) for side in sides)
        q, a = normalize(q, dim=1), normalize(a, dim=1)
        tq, ta = (normalize(torch.from_numpy(self.teacher[side]).to(q.device).float(), dim=1) for side in sides)
        rated = tq @ ta.T
        own = torch.eye(len(batch), dtype=torch.bool, device=q.device)
        unsure = (rated >= rated.diagonal()[:, None]) | (rated >= rated.diagonal()[None, :])
        logits = SHARPNESS * q @ a.T
        sure = logits.masked_fill(unsure & ~own, -torch.inf)
        right = torch.arange(len(batch), device=q.device)
        order = sum(
            kl_div(log_softmax(own_side, 1), log_softmax(SHARPNESS * its, 1), log_target=True, reduction="batchmean")
            for own_side, its in ((logits, rated), (logits.T, rated.T))
        )
        assert isinstance(order, Tensor)
        return total_of(
            {
                "answers": (1 - ORDER) * (cross_entropy(sure, right) + cross_entropy(sure.T, right)) / 2,
                "order": ORDER * order / 2,
                "vectors": COSINE_WEIGHT * (1 - (torch.cat([q, a]) * torch.cat([tq, ta])).sum(1)).mean(),
            }
        )
