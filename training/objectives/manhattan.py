"""MaLSTM's objective: g = exp(-||h_a - h_b||_1) regressed to the label by its squared error.

J. Mueller, A. Thyagarajan, "Siamese Recurrent Architectures for Learning Sentence Similarity", AAAI 2016: g is their
similarity function; ratings are rescaled to [0, 1]. The cosine may take its place, for comparison. Optionally the loss
of an entailment head is added (not in the paper), so that the embeddings encode entailment before the support vector
machine is fitted on them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from training.models.kinds import SiameseModel
from training.models.malstm import SIMILARITIES
from training.objectives.batches import Indices
from training.objectives.development import encode_all
from training.objectives.losses import total_of
from training.objectives.metrics import graded
from training.objectives.objective import Objective
from training.objectives.supervised import LabelledPairs, entailment_loss


@dataclass(frozen=True)
class ManhattanConfig:
    """Scale of the labels, and what is fitted on the frozen embeddings after training."""

    scale: tuple[float, float] = (1.0, 5.0)  # of the ratings; their lowest means g = 0, their highest g = 1
    similarity: Literal["exp_l1", "cosine"] = "exp_l1"  # g: the paper's, or the cosine
    calibrate_on: Literal["train", "out-of-fold"] = "train"  # of SICK; the paper: train
    entailment: bool = False  # an SVM for SICK's entailment labels (`training.models.svm`)
    entailment_weight: float = 0.0  # of a head's loss in training; 0: no head. The SVM replaces it afterwards


@dataclass(eq=False)
class ManhattanObjective(Objective):
    """Mean squared error of g over rated pairs, and the entailment head's loss over those that have a label.

    Raises:
        ValueError: a pair has no rating, or one outside the scale.
    """

    model: SiameseModel
    training: LabelledPairs
    development: LabelledPairs
    config: ManhattanConfig
    batch_size: int
    seed: int
    rows: Indices | None = None  # of the training pairs those to train on; None: all

    def __post_init__(self) -> None:
        low, high = self.config.scale
        for what, pairs in (("training", self.training), ("development", self.development)):
            inside = (pairs.rating >= low) & (pairs.rating <= high)  # NaN, no rating, is not inside either
            if not inside.all():
                first = int(np.argmin(inside))
                raise ValueError(
                    f"{what} pair {first}: a rating in {low:g}..{high:g} expected, got {pairs.rating[first]}"
                )
        self.chosen = np.arange(len(self.training)) if self.rows is None else self.rows
        super().__init__(len(self.chosen), self.batch_size, self.seed)
        self.similarity = SIMILARITIES[self.config.similarity]

    def batches(self, epoch: int) -> Iterator[Indices]:
        """Indices of training pairs."""
        orders = super().batches(epoch)
        return (self.chosen[order] for order in orders)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Mean squared error plus the weighted entailment loss."""
        a, b = self.model.encode_pair(self.training.a.batch(batch), self.training.b.batch(batch))
        low, high = self.config.scale
        target = (torch.from_numpy(self.training.rating[batch]).to(a.device) - low) / (high - low)
        error = ((self.similarity(a, b) - target) ** 2).mean()
        parts = {"error": error}
        if self.config.entailment_weight > 0:
            inference = entailment_loss(self.model.heads["entailment"], a, b, self.training.odds[batch])
            parts["entailment"] = self.config.entailment_weight * inference
        return total_of(parts)

    def evaluate(self) -> dict[str, float]:
        """Pearson, Spearman and squared error of g, stretched over the scale; `selection` is Pearson r.

        The accuracy is that of the head, not of the support vector machine that replaces it.
        """
        a, b = (encode_all(self.model, side) for side in (self.development.a, self.development.b))
        low, high = self.config.scale
        stretched = low + (high - low) * self.similarity(a, b).cpu().numpy().astype(np.float64)
        metrics = graded(stretched, self.development.rating)
        known = self.development.label >= 0
        if self.config.entailment_weight > 0 and known.any():
            predicted = self.model.heads["entailment"](a, b).argmax(1).cpu().numpy()
            metrics["accuracy"] = float((predicted == self.development.label)[known].mean())
        return {**metrics, "selection": metrics["pearson"]}
