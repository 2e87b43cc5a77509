"""Regress the student's in-batch cosines to a teacher's, on unlabelled sentences.

Not from a paper. It distils a sentence-transformer into static word vectors. Nearly all cosines of a batch are those of
unrelated sentences; optionally each sentence is also paired with one of its near neighbours
(`training.objectives.nearest`), because rated test pairs are mostly related.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.models.kinds import SiameseModel
from training.objectives.batches import Indices, Sentences
from training.objectives.development import GradedSets
from training.objectives.losses import cosine_matrix_loss, cosine_pair_loss, total_of
from training.objectives.nearest import near_neighbours
from training.objectives.objective import GradedObjective

TREES = 2  # of the neighbour search


@dataclass(frozen=True)
class TeacherCosineConfig:
    """Shares and weights: by default half of the batches are random, half of similar sentences."""

    near_share: float = 0.5
    neighbour_weight: float = 0.0  # of the loss over near neighbours beside that of the batch; 0: none
    neighbours: int = 3  # of each sentence in each tree; one is drawn at each step


@dataclass(eq=False)
class TeacherCosineObjective(GradedObjective):
    """Mean squared error of cosine matrices."""

    model: SiameseModel
    sentences: Sentences
    teacher: npt.NDArray[np.float16]  # [n, E]: its embeddings of the n sentences
    development: GradedSets
    config: TeacherCosineConfig
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        super().__init__(len(self.sentences), self.batch_size, self.seed, drop_last=True)
        self.choice = torch.Generator().manual_seed(self.seed)
        self.neighbours: Indices | None = None
        if self.config.neighbour_weight > 0:
            each = self.config.neighbours
            self.neighbours = near_neighbours(self.teacher, each=each, trees=TREES, seed=self.seed)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """Indices of sentences: random batches, mixed with windows along a random direction of the teacher."""
        rng = np.random.default_rng((self.seed, epoch, 1))
        direction = rng.standard_normal((self.teacher.shape[1],)).astype(np.float32)
        # Projected in blocks, because the whole matrix in float32 would double the memory of a run.
        along = np.concatenate([self.teacher[s : s + 65536] @ direction for s in range(0, len(self.teacher), 65536)])
        by_projection = np.argsort(along, kind="stable")
        windows = rng.permutation(self.steps())
        near = rng.random(self.steps()) < self.config.near_share
        for step, batch in enumerate(super().batches(epoch)):
            if near[step]:
                start = windows[step] * self.batch_size
                batch = by_projection[start : start + self.batch_size]
            yield batch

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Cosine regression over the batch, and with a random neighbour of each sentence."""
        own = len(batch)
        if self.neighbours is not None:
            drawn = torch.randint(self.neighbours.shape[1], (own,), generator=self.choice).numpy()
            batch = np.concatenate([batch, self.neighbours[batch, drawn]])
        inputs = self.sentences.batch(batch)
        student = self.model.encode(inputs)
        target = torch.from_numpy(np.asarray(self.teacher[batch], dtype=np.float32)).to(student.device)
        parts = {"regression": cosine_matrix_loss(student[:own], target[:own])}
        if self.neighbours is not None:
            near = cosine_pair_loss(student[:own], student[own:], target[:own], target[own:])
            parts["neighbours"] = self.config.neighbour_weight * near
        return total_of(parts)

    def generators(self) -> list[torch.Generator]:
        """The generator that draws neighbours, if there are any."""
        return [] if self.neighbours is None else [self.choice]
