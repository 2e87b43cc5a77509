"""Transfer training on paraphrase pairs with the margin loss (Wieting et al. 2016, section 3.2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from training.models.kinds import SiameseModel
from training.objectives.batches import Indices, Sentences
from training.objectives.development import GradedSets
from training.objectives.losses import Negatives, margin_loss, total_of
from training.objectives.objective import GradedObjective
from training.objectives.regularisers import NO_PENALTY, Regulariser, RegulariserConfig
from training.objectives.scrambling import Scrambler


@dataclass(frozen=True)
class MarginConfig:
    """Settings; the paper tunes margin over 0.4/0.6/0.8, batch over 25/50/100, MAX or MIX."""

    margin: float = 0.4
    negatives: Negatives = "max"
    regulariser: RegulariserConfig = NO_PENALTY
    scramble: float = 0.0  # share of pairs whose words are shuffled (Wieting & Gimpel 2017: 0.25/0.5/0.75)


@dataclass(eq=False)
class MarginObjective(GradedObjective):
    """Pairs of paraphrases, `a[i]` and `b[i]`, against the hardest in-batch negatives."""

    model: SiameseModel
    a: Sentences
    b: Sentences
    development: GradedSets
    config: MarginConfig
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        super().__init__(len(self.a), self.batch_size, self.seed, drop_last=True)  # negatives come from the batch
        self.regulariser = Regulariser(self.model, self.config.regulariser)
        self.generator = torch.Generator().manual_seed(self.seed)  # of the MIX coin and its random negatives
        self.scrambler = Scrambler(self.config.scramble, self.seed)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Margin loss plus penalties."""
        left, right = self.scrambler(self.a.batch(batch), self.b.batch(batch))  # before negatives are chosen
        a, b = self.model.encode_pair(left, right)
        margin = margin_loss(a, b, self.config.margin, self.config.negatives, self.generator)
        penalty = self.regulariser(torch.cat([left[0].flatten(), right[0].flatten()]))
        return total_of({"margin": margin, "penalty": penalty})

    def generators(self) -> list[torch.Generator]:
        """The generators of random negatives and of scrambling."""
        return [self.generator, *self.scrambler.generators()]
