"""The margin loss on paraphrase pairs plus the teacher's cosine regression on sentences.

Not from a paper. Each loss alone is better on some sets: the teacher's on definitions and captions, the margin loss on
tweets and student answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count, islice

import torch
from torch import Tensor

from training.architectures.models import SiameseModel
from training.objectives.parts.batches import Indices
from training.objectives.teacher_cosine import TeacherCosineConfig, TeacherCosineObjective
from training.objectives.transfer import MarginConfig, MarginObjective


@dataclass(frozen=True)
class TeacherMarginConfig:
    """Settings of both losses; the regression loss is about a hundredth of the margin loss."""

    teacher: TeacherCosineConfig
    margin: MarginConfig
    margin_weight: float
    margin_batch: int = 100  # pairs beside each batch of sentences


class TeacherMarginObjective:
    """Regression plus weighted margin loss, one batch of each per step."""

    def __init__(self, teacher: TeacherCosineObjective, margin: MarginObjective, weight: float) -> None:
        """Both objectives must be of one model.

        Raises:
            ValueError: they train different models.
        """
        if teacher.model is not margin.model:
            raise ValueError("both objectives must train one model")
        self.model: SiameseModel = teacher.model
        self.teacher, self.margin, self.weight = teacher, margin, weight

    def steps(self) -> int:
        """Those of the teacher's objective; the pairs are repeated as needed."""
        return self.teacher.steps()

    def batches(self, epoch: int, rank: int, world: int) -> Iterator[tuple[Indices, Indices]]:
        """Indices of sentences and of pairs; pairs continue where the previous epoch ended."""
        first = epoch * self.steps()
        lap, into = divmod(first, self.margin.steps())
        pairs = chain.from_iterable(self.margin.batches(lap + i, rank, world) for i in count())
        return zip(self.teacher.batches(epoch, rank, world), islice(pairs, into, None), strict=False)

    def loss(self, batch: tuple[Indices, Indices]) -> tuple[Tensor, dict[str, float]]:
        """Sum of both, with their parts."""
        regression, parts = self.teacher.loss(batch[0])
        margin, others = self.margin.loss(batch[1])
        return regression + self.weight * margin, {**parts, "margin": others["margin"]}

    def evaluate(self) -> dict[str, float]:
        """Mean Pearson r over the development sets."""
        return self.teacher.evaluate()

    def generators(self) -> list[torch.Generator]:
        """Those of both."""
        return [*self.teacher.generators(), *self.margin.generators()]
