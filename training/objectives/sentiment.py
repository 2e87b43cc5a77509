"""Classification of single sentences by sentiment.

Wieting et al. (2016), section 4.4: negative log-likelihood of the class under a head over the sentence's embedding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from core.tokenizer import Tokenizer
from training.models.kinds import SiameseModel
from training.objectives.batches import Indices, Sentences, alike
from training.objectives.development import encode_all
from training.objectives.losses import total_of
from training.objectives.metrics import labelled
from training.objectives.objective import Objective
from training.objectives.regularisers import NO_PENALTY, Regulariser, RegulariserConfig

HEAD = "sentiment"


@dataclass(frozen=True)
class SentimentConfig:
    """The head over one embedding and the penalties."""

    hidden: int = 50
    regulariser: RegulariserConfig = NO_PENALTY
    pool: int = 1  # so many batches at a time are made of a random draw sorted by length; 1: not sorted


class LabelledSentences:
    """Tokenised sentences and their classes."""

    def __init__(
        self, rows: Sequence[tuple[str, int]], tokenizer: Tokenizer, max_tokens: int, labels: Sequence[str]
    ) -> None:
        """`rows`: sentence and class, counted from 0; `labels` name the classes."""
        self.labels = labels
        self.sentences = Sentences([text for text, _ in rows], tokenizer, max_tokens)
        self.label = np.array([label for _, label in rows], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.label)


@dataclass(eq=False)
class SentimentObjective(Objective):
    """Negative log-likelihood of the classes of sentences; the model must have a head called `sentiment`."""

    model: SiameseModel
    training: LabelledSentences
    development: LabelledSentences
    config: SentimentConfig
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        super().__init__(len(self.training), self.batch_size, self.seed)
        self.regulariser = Regulariser(self.model, self.config.regulariser)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """The epoch's batches, where the settings say so of sentences of like length."""
        if self.config.pool == 1:
            return super().batches(epoch)
        return alike(self.training.sentences.lengths, self.batch_size, self.config.pool, self.seed, epoch)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Mean negative log-likelihood plus penalties."""
        words = self.training.sentences.batch(batch)
        embeddings = self.model.encode(words)
        label = torch.from_numpy(self.training.label[batch]).to(embeddings.device)
        nll = nll_loss(self.model.heads[HEAD](embeddings), label)
        return total_of({HEAD: nll, "penalty": self.regulariser(words[0].flatten())})

    def evaluate(self) -> dict[str, float]:
        """Accuracy and macro F1 on the development sentences; `selection` is the accuracy."""
        output = self.model.heads[HEAD](encode_all(self.model, self.development.sentences))
        predicted = output.argmax(1).cpu().numpy()
        names = self.development.labels
        figures = labelled([names[i] for i in predicted], [names[i] for i in self.development.label])
        return {**figures, "selection": figures["accuracy"]}
