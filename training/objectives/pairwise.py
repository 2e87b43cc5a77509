"""Objective of interaction models: log-probabilities of classes against a rating, a label, or a correct answer.

H. He, J. Lin (NAACL 2016), section 8: KL divergence to the sparse target distribution of a rating; max-margin loss over
two classes for answer selection. Y. Li et al. (2019): the same KL, and cross-entropy, which is KL to a target with all
its mass on one class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import multi_margin_loss

from core.scoring import expected_rating
from core.tokenizer import Tokenizer
from training.data.pairs import Pair
from training.models.kinds import InteractionModel
from training.objectives.batches import Indices, Sentences, pooled
from training.objectives.losses import kl_to_target, sparse_target, total_of
from training.objectives.metrics import binary, graded, ranked
from training.objectives.objective import Objective

RATINGS_OF_SICK = (1.0, 2.0, 3.0, 4.0, 5.0)
RATINGS_OF_STS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
YES_OR_NO = (0.0, 1.0)
SORTED_TOGETHER = 50  # batches; within these, pairs are sorted by size, so that batches need little padding
EVALUATION_BATCH = 64


@dataclass(frozen=True)
class PairwiseConfig:
    """Classes of the output, loss, and sampling."""

    classes: tuple[float, ...]  # rising; the score is the expected class
    selection: Literal["pearson", "accuracy", "mrr"]  # which development figure chooses the epoch
    loss: Literal["kl", "margin"] = "kl"
    both_orders: bool = False  # answer with the mean of (a, b) and (b, a); in training each pair is read in one order
    swap: bool = False  # in training every batch is read in an order drawn at random
    negatives: int | None = None  # wrong answers sampled each epoch for every right one; None: all
    l2: float = 0.0  # lambda ||W||^2 over all weights but the words


class TargetPairs:
    """Tokenised pairs with their targets."""

    def __init__(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_tokens: int) -> None:
        """Tokenise both sides of all pairs.

        Raises:
            ValueError: a pair without a target, or a text without a token.
        """
        if any(pair.target is None for pair in pairs):
            raise ValueError("every pair needs a target")
        self.a = Sentences([p.a for p in pairs], tokenizer, max_tokens)
        self.b = Sentences([p.b for p in pairs], tokenizer, max_tokens)
        self.target = np.array([p.target for p in pairs], dtype=np.float32)
        self.groups = [p.group for p in pairs]
        self.area = self.a.lengths * self.b.lengths  # about proportional to the cost of a pair

    def __len__(self) -> int:
        return len(self.target)


@dataclass(eq=False)
class PairwiseObjective(Objective):
    """Loss over pairs, and the development metric of the task."""

    model: InteractionModel
    training: TargetPairs  # `config.negatives` counts within their groups
    development: TargetPairs
    config: PairwiseConfig
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        super().__init__(len(self.training), self.batch_size, self.seed)
        self.classes = torch.tensor(self.config.classes)
        self.coin = torch.Generator().manual_seed(self.seed)
        self.penalised = [p for p in self.model.parameters() if p is not self.model.embedding.weight]

    def steps(self) -> int:
        """Batches of an epoch, the last one smaller."""
        return -(-len(self._drawn(0)) // self.batch_size)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """Indices of training pairs, grouped by similar size."""
        batches = pooled(self._drawn(epoch), self.training.area, self.batch_size, SORTED_TOGETHER)
        order = np.random.default_rng((self.seed, epoch, 1)).permutation(len(batches))
        return (batches[i] for i in order)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """KL or margin, and the penalty."""
        left, right = self.training.a.batch(batch), self.training.b.batch(batch)
        if self.config.swap and bool(torch.rand((), generator=self.coin) < 0.5):
            left, right = right, left
        output = self.model.network(*left, *right)
        target = torch.from_numpy(self.training.target[batch])
        if self.config.loss == "margin":
            # On log-probabilities, whose differences equal those of the scores before the softmax.
            fit = multi_margin_loss(output, torch.searchsorted(self.classes, target), margin=1.0)
        else:
            fit = kl_to_target(output, sparse_target(target, self.classes))
        parts = {"fit": fit}
        if self.config.l2:
            parts["penalty"] = self.config.l2 * torch.stack([(p**2).sum() for p in self.penalised]).sum()
        return total_of(parts)

    def evaluate(self) -> dict[str, float]:
        """Development figures; `selection` is the one the config names."""
        score = predict(self.model, self.development, self.config.classes)
        metrics = measure(score, self.development, self.config)
        return {**metrics, "selection": metrics[self.config.selection]}

    def generators(self) -> list[torch.Generator]:
        """The generator of the order of a pair."""
        return [self.coin]

    def _drawn(self, epoch: int) -> Indices:
        """The pairs of an epoch in a random order that depends only on seed and epoch."""
        rng = np.random.default_rng((self.seed, epoch))
        if self.config.negatives is None:
            return rng.permutation(len(self.training))
        right = self.training.target > 0.5
        of_group: dict[str, list[int]] = {}
        for i in np.flatnonzero(~right).tolist():
            of_group.setdefault(self.training.groups[i], []).append(i)
        wanted: dict[str, int] = {}
        for i in np.flatnonzero(right).tolist():
            group = self.training.groups[i]
            wanted[group] = wanted.get(group, 0) + self.config.negatives
        wrong = [rng.permutation(of_group.get(group, []))[:count].astype(np.int64) for group, count in wanted.items()]
        return rng.permutation(np.concatenate([np.flatnonzero(right), *wrong]))


@torch.no_grad()
def predict(model: InteractionModel, pairs: TargetPairs, classes: Sequence[float]) -> npt.NDArray[np.float64]:
    """Expected class of every pair [n]; pairs of similar size are run together, which changes no score."""
    score = np.empty(len(pairs))
    order = np.argsort(pairs.area, kind="stable")
    for start in range(0, len(order), EVALUATION_BATCH):
        batch = order[start : start + EVALUATION_BATCH]
        output = model.score(pairs.a.batch(batch), pairs.b.batch(batch)).cpu().numpy()
        score[batch] = expected_rating(output, classes)
    return score


def measure(score: npt.NDArray[np.float64], pairs: TargetPairs, config: PairwiseConfig) -> dict[str, float]:
    """The figures of the task: r, rho and MSE; accuracy and F1; or MAP and MRR with the number of questions."""
    if config.selection == "pearson":
        return graded(score, pairs.target)
    if config.selection == "accuracy":
        return binary((score > 0.5).tolist(), (pairs.target > 0.5).tolist())
    return ranked(score, (pairs.target > 0.5).tolist(), pairs.groups)
