"""Classes of single sentences: sentiment, as the papers' test of what an encoder knows beside similarity.

Wieting et al. (2016), section 4.4: negative log-likelihood of the class under a head over the sentence's embedding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from contract.tokenizer import Tokenizer
from training.batches import Indices, Sentences, shard, shuffled
from training.metrics import labelled
from training.models import SiameseModel
from training.objectives.development import encode_all
from training.regularisers import NO_PENALTY, Regulariser, RegulariserConfig

HEAD = "sentiment"


@dataclass(frozen=True)
class SentimentConfig:
    """The head over one embedding and the penalties."""

    hidden: int = 50
    regulariser: RegulariserConfig = NO_PENALTY


class LabelledSentences:
    """Tokenised sentences and their classes."""

    def __init__(self, rows: Sequence[tuple[str, int]], tokenizer: Tokenizer, max_tokens: int) -> None:
        """`rows`: sentence and class, counted from 0."""
        self.sentences = Sentences([text for text, _ in rows], tokenizer, max_tokens)
        self.label = np.array([label for _, label in rows], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.label)


class SentimentObjective:
    """Negative log-likelihood of the classes of sentences."""

    def __init__(
        self,
        model: SiameseModel,
        training: LabelledSentences,
        development: LabelledSentences,
        config: SentimentConfig,
        batch_size: int,
        seed: int,
    ) -> None:
        """The model must have a head called `sentiment`."""
        self.model: SiameseModel = model
        self.training, self.development = training, development
        self.batch_size, self.seed = batch_size, seed
        self.regulariser = Regulariser(model, config.regulariser)

    def steps(self) -> int:
        """Batches of an epoch, the last one smaller."""
        return -(-len(self.training) // self.batch_size)

    def batches(self, epoch: int, rank: int, world: int) -> Iterator[Indices]:
        """Indices of training sentences."""
        for indices in shuffled(len(self.training), self.batch_size, self.seed, epoch):
            part = shard(indices, rank, world)
            yield part if len(part) else indices[:1]  # a rank without work would leave the others waiting

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Mean negative log-likelihood plus penalties."""
        words = self.training.sentences.batch(batch)
        embeddings = self.model.encode(words)
        label = torch.from_numpy(self.training.label[batch]).to(embeddings.device)
        nll = nll_loss(self.model.heads[HEAD](embeddings), label)
        penalty = self.regulariser(words[0].flatten())
        return nll + penalty, {HEAD: float(nll.detach()), "penalty": float(penalty.detach())}

    def evaluate(self) -> dict[str, float]:
        """Accuracy and macro F1 on the development sentences; `selection` is the accuracy."""
        figures = sentiment_figures(self.model, self.development)
        return {**figures, "selection": figures["accuracy"]}

    def generators(self) -> list[torch.Generator]:
        """None: nothing here is random but the order of batches."""
        return []


@torch.no_grad()
def sentiment_figures(model: SiameseModel, gold: LabelledSentences) -> dict[str, float]:
    """Accuracy and macro F1 of the sentiment head on labelled sentences."""
    predicted = model.heads[HEAD](encode_all(model, gold.sentences)).argmax(1).cpu().numpy()
    return labelled([str(label) for label in predicted], [str(label) for label in gold.label])
