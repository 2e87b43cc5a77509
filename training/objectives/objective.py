"""What the objectives have in common: the training loop drives any of them by these methods."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from training.objectives.batches import Indices, shuffled
from training.objectives.development import GradedSets


class Objective(ABC):
    """Data, loss and development score of a run; by default its batches are indices in a random order."""

    model: nn.Module

    def __init__(self, examples: int, batch_size: int, seed: int, *, drop_last: bool = False) -> None:
        """`examples` of an epoch; `drop_last`: without the last batch, where it is smaller."""
        self.examples, self.batch_size, self.seed, self.drop_last = examples, batch_size, seed, drop_last

    def steps(self) -> int:
        """Batches in an epoch."""
        return self.examples // self.batch_size if self.drop_last else -(-self.examples // self.batch_size)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """The epoch's batches in an order that depends only on seed and epoch."""
        return shuffled(self.examples, self.batch_size, self.seed, epoch, drop_last=self.drop_last)

    @abstractmethod
    def loss(self, batch: Any) -> tuple[Tensor, dict[str, float]]:
        """The scalar to minimise and its named parts, for the log."""

    @abstractmethod
    def evaluate(self) -> dict[str, float]:
        """Development metrics, higher `selection` is better."""

    def generators(self) -> list[torch.Generator]:
        """Random generators whose state is in the checkpoint; none where orders follow from seed and epoch."""
        return []


class GradedObjective(Objective):
    """One whose epoch is chosen by the mean Pearson r over rated sets."""

    model: Any
    development: GradedSets

    def evaluate(self) -> dict[str, float]:
        """Pearson r of each set, and their mean as `selection`."""
        return self.development.evaluate(self.model)
