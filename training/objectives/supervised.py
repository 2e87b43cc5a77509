"""Supervised pairs: graded similarity (KL to the sparse target) and entailment (NLL), alone or together.

Where a teacher labelled the pairs, the KL to its probabilities replaces the NLL; for one-hot targets both are equal.

Tai et al. (2015), section 4.2; Wieting et al. (2016), section 4.4. With both on one encoder, one cached
embedding serves both tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from core.manifest import EntailmentLabel
from core.scoring import expected_rating
from core.tokenizer import Tokenizer
from training.data.pairs import Pair
from training.models.kinds import SiameseModel
from training.objectives.batches import Indices, Sentences
from training.objectives.development import encode_all
from training.objectives.losses import kl_to_target, sparse_target, total_of
from training.objectives.metrics import graded, labelled
from training.objectives.objective import Objective
from training.objectives.regularisers import NO_PENALTY, Regulariser, RegulariserConfig
from training.objectives.scrambling import Scrambler, Scrambling

LABELS: tuple[EntailmentLabel, EntailmentLabel, EntailmentLabel] = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class SupervisedConfig:
    """Heads, and the weight of the labels' loss beside that of the ratings."""

    classes: tuple[float, ...] | None = (1.0, 2.0, 3.0, 4.0, 5.0)  # None: no similarity head
    entailment_weight: float = 0.0  # 0: no entailment head
    hidden: int = 50
    directed: bool = False  # the entailment head also gets the signed difference (not in the paper)
    regulariser: RegulariserConfig = NO_PENALTY
    scramble: float = 0.0  # share of training pairs whose words are shuffled (Wieting & Gimpel 2017, section 4.3)
    scrambling: Scrambling = "pairs"  # or otherwise (footnote 5 there)


class LabelledPairs:
    """Tokenised pairs; a pair may lack the rating or the label, and is then left out of that loss.

    `rating` [N] (NaN: none), `label` [N] in -1..2 (-1: none) and `odds` [N, 3], the probabilities of a teacher or else
    the one-hot label (NaN: none).
    """

    def __init__(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_tokens: int) -> None:
        """Tokenise both sides of all pairs."""
        self.a = Sentences([p.a for p in pairs], tokenizer, max_tokens)
        self.b = Sentences([p.b for p in pairs], tokenizer, max_tokens)
        self.rating = np.array([np.nan if p.target is None else p.target for p in pairs], dtype=np.float32)
        self.label = np.array(
            [-1 if p.label is None else LABELS.index(cast(EntailmentLabel, p.label)) for p in pairs], dtype=np.int64
        )
        self.odds = np.full((len(pairs), len(LABELS)), np.nan, dtype=np.float32)
        self.odds[self.label >= 0] = np.eye(len(LABELS), dtype=np.float32)[self.label[self.label >= 0]]
        for row, pair in enumerate(pairs):
            if pair.label_odds is not None:
                self.odds[row] = pair.label_odds

    def __len__(self) -> int:
        return len(self.rating)


def entailment_loss(head: nn.Module, a_BD: Tensor, b_BD: Tensor, odds_B3: npt.NDArray[np.float32]) -> Tensor:
    """Mean KL of the head's distribution to the label probabilities, over the pairs that have them; 0 for none."""
    odds = torch.from_numpy(odds_B3).to(a_BD.device)
    known = ~torch.isnan(odds[:, 0])
    return kl_to_target(head(a_BD[known], b_BD[known]), odds[known]) if bool(known.any()) else a_BD.new_zeros(())


@dataclass(eq=False)
class SupervisedObjective(Objective):
    """Sum of the similarity and entailment losses over labelled pairs; the model must have the heads that weigh."""

    model: SiameseModel
    training: LabelledPairs
    development: LabelledPairs
    config: SupervisedConfig
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        super().__init__(len(self.training), self.batch_size, self.seed)
        self.classes = torch.tensor(self.config.classes or (0.0, 1.0))
        self.regulariser = Regulariser(self.model, self.config.regulariser)
        self.scrambler = Scrambler(self.config.scramble, self.seed, self.config.scrambling)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """Weighted losses plus penalties."""
        left, right = self.scrambler(self.training.a.batch(batch), self.training.b.batch(batch))
        a, b = self.model.encode_pair(left, right)
        parts: dict[str, Tensor] = {}
        rated = torch.from_numpy(~np.isnan(self.training.rating[batch])).to(a.device)
        if "similarity" in self.model.heads and bool(rated.any()):
            ratings = torch.from_numpy(self.training.rating[batch]).to(a.device)[rated]
            target = sparse_target(ratings, self.classes.to(a.device))
            predicted = self.model.heads["similarity"](a[rated], b[rated])
            parts["similarity"] = kl_to_target(predicted, target)
        if "entailment" in self.model.heads:
            inference = entailment_loss(self.model.heads["entailment"], a, b, self.training.odds[batch])
            parts["entailment"] = self.config.entailment_weight * inference
        parts["penalty"] = self.regulariser(torch.cat([left[0].flatten(), right[0].flatten()]))
        return total_of(parts)

    def evaluate(self) -> dict[str, float]:
        """Development figures of each head; `selection` is the mean of Pearson r and accuracy, as available."""
        a, b = (encode_all(self.model, side) for side in (self.development.a, self.development.b))
        metrics: dict[str, float] = {}
        if "similarity" in self.model.heads and self.config.classes:
            output = self.model.heads["similarity"](a, b).cpu().numpy()
            rated = ~np.isnan(self.development.rating)
            metrics |= graded(expected_rating(output, self.config.classes)[rated], self.development.rating[rated])
        if "entailment" in self.model.heads:
            predicted = self.model.heads["entailment"](a, b).argmax(1).cpu().numpy()
            known = self.development.label >= 0
            gold = [LABELS[i] for i in self.development.label[known]]
            metrics |= labelled([LABELS[i] for i in predicted[known]], gold)
        chosen = [metrics[name] for name in ("pearson", "accuracy") if name in metrics]
        return {**metrics, "selection": float(np.mean(chosen))}

    def generators(self) -> list[torch.Generator]:
        """The generator of scrambling, if there is scrambling."""
        return self.scrambler.generators()
