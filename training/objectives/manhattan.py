"""MaLSTM's objective: g = exp(-||h_a - h_b||_1) regressed to the label by its squared error.

J. Mueller, A. Thyagarajan, "Siamese Recurrent Architectures for Learning Sentence Similarity", AAAI 2016: g is their
similarity function, the labels are rescaled to [0, 1]. Beside it, where the recipe says so, the loss of an entailment
head: ours, so that the embeddings that the support vector machine reads afterwards have heard of entailment.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from training.batches import Indices, shard, shuffled
from training.metrics import graded
from training.models import SiameseModel
from training.objectives.development import encode_all
from training.objectives.supervised import LabelledPairs, entailment_loss
from training.regularisers import NO_PENALTY, Regulariser, RegulariserConfig


@dataclass(frozen=True)
class ManhattanConfig:
    """The labels' scale, what pulls at the weights, and what is fitted on the frozen embeddings afterwards."""

    scale: tuple[float, float] = (1.0, 5.0)  # of the ratings; their lowest means g = 0, their highest g = 1
    regulariser: RegulariserConfig = NO_PENALTY
    calibrate_on: Literal["train", "out-of-fold", "dev"] = "train"  # of SICK; the paper: train
    entailment: bool = False  # an SVM for SICK's entailment labels (`training.svm`)
    entailment_weight: float = 0.0  # of a head's loss while training; 0: no head. The SVM takes its place afterwards


def manhattan_similarity(a_BD: Tensor, b_BD: Tensor) -> Tensor:
    """g = exp(-||a - b||_1) of each pair of rows: [B, D], [B, D] -> [B] in (0, 1]."""
    return torch.exp(-(a_BD - b_BD).abs().sum(dim=1))


class ManhattanObjective:
    """Mean squared error of g over rated pairs, and the entailment head's loss over those that have a label."""

    def __init__(
        self,
        model: SiameseModel,
        training: LabelledPairs,
        development: LabelledPairs,
        config: ManhattanConfig,
        batch_size: int,
        seed: int,
        *,
        rows: Indices | None = None,
    ) -> None:
        """Every pair must be rated; with `rows`, only those training pairs are trained on.

        Raises:
            ValueError: a pair has no rating, or one outside the scale.
        """
        low, high = config.scale
        for what, pairs in (("training", training), ("development", development)):
            inside = (pairs.rating >= low) & (pairs.rating <= high)  # NaN, no rating, is not inside either
            if not inside.all():
                first = int(np.argmin(inside))
                raise ValueError(
                    f"{what} pair {first}: a rating in {low:g}..{high:g} expected, got {pairs.rating[first]}"
                )
        self.model: SiameseModel = model
        self.training, self.development, self.config = training, development, config
        self.batch_size, self.seed = batch_size, seed
        self.rows = np.arange(len(training)) if rows is None else rows
        self.regulariser = Regulariser(model, config.regulariser)

    def steps(self) -> int:
        """Batches of an epoch, the last one smaller."""
        return -(-len(self.rows) // self.batch_size)

    def batches(self, epoch: int, rank: int, world: int) -> Iterator[Indices]:
        """Indices of training pairs."""
        for order in shuffled(len(self.rows), self.batch_size, self.seed, epoch):
            indices = self.rows[order]
            part = shard(indices, rank, world)
            yield part if len(part) else indices[:1]  # a rank without work would leave the others waiting

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Mean squared error plus the weighted entailment loss plus penalties."""
        left, right = self.training.a.batch(batch), self.training.b.batch(batch)
        a, b = self.model.encode_pair(left, right)
        low, high = self.config.scale
        target = (torch.from_numpy(self.training.rating[batch]).to(a.device) - low) / (high - low)
        error = ((manhattan_similarity(a, b) - target) ** 2).mean()
        parts = {"error": error}
        if self.config.entailment_weight > 0:
            inference = entailment_loss(self.model.heads["entailment"], a, b, self.training.odds[batch])
            parts["entailment"] = self.config.entailment_weight * inference
        parts["penalty"] = self.regulariser(torch.cat([left[0].flatten(), right[0].flatten()]))
        return torch.stack(list(parts.values())).sum(), {name: float(part.detach()) for name, part in parts.items()}

    def evaluate(self) -> dict[str, float]:
        """Pearson, Spearman and squared error of g, stretched over the scale; `selection` is Pearson r.

        The accuracy is that of the head of the training, not of the machine that is fitted afterwards.
        """
        a, b = (encode_all(self.model, side) for side in (self.development.a, self.development.b))
        low, high = self.config.scale
        stretched = low + (high - low) * manhattan_similarity(a, b).cpu().numpy().astype(np.float64)
        metrics = graded(stretched, self.development.rating)
        known = self.development.label >= 0
        if self.config.entailment_weight > 0 and known.any():
            predicted = self.model.heads["entailment"](a, b).argmax(1).cpu().numpy()
            metrics["accuracy"] = float((predicted == self.development.label)[known].mean())
        return {**metrics, "selection": metrics["pearson"]}

    def generators(self) -> list[torch.Generator]:
        """No randomness outside the order of batches."""
        return []
