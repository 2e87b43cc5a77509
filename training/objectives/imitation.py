"""A small transformer learns the vectors of a large one, and their products within a batch.

Loss: 1 - cosine to the teacher's vector, and ten times the mean squared difference of the two matrices of cosines. Not
from a paper; the second term is that of `training.objectives.teacher_cosine`. The texts of a batch are of like length.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from training.architectures.models import Batch, SiameseModel
from training.objectives.development import GradedSets
from training.objectives.parts.batches import Indices, Sentences, shard
from training.objectives.parts.losses import cosine_matrix_loss, total_of

PRODUCTS = 10.0  # weight of the products
WINDOW = 50  # batches whose texts are ordered by length together


class Student(SiameseModel):
    """A transformer as the model of the training loop: its words are no `WordEmbedding`."""

    def encode(self, batch: Batch) -> Tensor:
        """(ids [B, T], lengths [B]) -> embeddings [B, D]."""
        low = self.training and self.precision == "bfloat16"
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            embeddings: Tensor = self.encoder(*batch)
        return embeddings.float()


class ImitationObjective:
    """The loss on a teacher's vectors."""

    def __init__(
        self,
        model: Student,
        sentences: Sentences,
        teacher: npt.NDArray[np.float16],
        development: GradedSets,
        batch_size: int,
        seed: int,
    ) -> None:
        """`teacher` [n, D] are the teacher's vectors of the n sentences."""
        if len(sentences) != len(teacher):
            raise ValueError(f"{len(sentences)} sentences but {len(teacher)} vectors")
        self.model = model
        self.sentences, self.teacher, self.development = sentences, teacher, development
        self.batch_size, self.seed = batch_size, seed

    def steps(self) -> int:
        """Full batches of an epoch."""
        return len(self.sentences) // self.batch_size

    def batches(self, epoch: int, rank: int, world: int) -> Iterator[Indices]:
        """Windows of a random order, each sorted by length and cut into batches, which come in random order."""
        rng = np.random.default_rng((self.seed, epoch))
        order = rng.permutation(len(self.sentences))[: self.steps() * self.batch_size]
        for start in range(0, len(order), WINDOW * self.batch_size):
            window = order[start : start + WINDOW * self.batch_size]
            window = window[np.argsort(self.sentences.lengths[window], kind="stable")]
            for batch in rng.permutation(len(window) // self.batch_size):
                yield shard(window[batch * self.batch_size : (batch + 1) * self.batch_size], rank, world)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Both terms."""
        student = self.model.encode(self.sentences.batch(batch))
        target = torch.from_numpy(self.teacher[batch].astype(np.float32))
        return total_of(
            {
                "vectors": (1 - cosine_similarity(student, target)).mean(),
                "products": PRODUCTS * cosine_matrix_loss(student, target),
            }
        )

    def evaluate(self) -> dict[str, float]:
        """Mean Pearson r over the development sets."""
        return self.development.evaluate(self.model)

    def generators(self) -> list[torch.Generator]:
        """None: batches depend on seed and epoch alone."""
        return []
