"""How each kind of published model is tuned: what of it moves, how fast, and what it learns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from semblance.tables.labelled_pairs import Kind
from training.data.pairs import Pair
from training.models.heads import PairHead
from training.models.kinds import output_dim
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens
from training.recipes.recipe import OptimiserConfig, Schedule
from workbench.tuning.networks import HEAD_LENGTH, ScaledHead, SiamesePair
from workbench.tuning.read_back import Start

TRAINED_TOKENS = 128  # of a sentence in training; more are cut
ENOUGH_PAIRS, FEWEST_EPOCHS = 64_000, 2  # seen by averages in all
_LENGTH_PAIRS = 500  # on which the length of embeddings is measured


@dataclass(frozen=True)
class TuningPlan:
    """Settings of a run."""

    optimiser: OptimiserConfig
    schedule: Schedule


AVERAGING = TuningPlan(OptimiserConfig("adam", 1e-3, 1e-3), Schedule(10, 64, patience=3, decay="linear"))
TRANSFORMER = TuningPlan(OptimiserConfig("adamw", 2e-5, None, clip=1.0), Schedule(3, 32, decay="linear"))


def plan_for(start: Start, pairs: int, epochs: int | None, rate: float | None) -> TuningPlan:
    """The settings of a kind of model for that many pairs, or with other epochs or another learning rate if given.

    Averages learn in their first thousand steps what they can: more epochs of many pairs fit words to single pairs.
    """
    plan = AVERAGING if start.averages else TRANSFORMER
    most = plan.schedule.epochs
    if start.averages:
        most = min(most, max(FEWEST_EPOCHS, ENOUGH_PAIRS // pairs))
    schedule = replace(plan.schedule, epochs=epochs or most)
    optimiser = plan.optimiser
    if rate is not None:
        words = None if optimiser.embedding_learning_rate is None else rate
        optimiser = replace(optimiser, learning_rate=rate, embedding_learning_rate=words)
    return TuningPlan(optimiser, schedule)


def module_for(start: Start, kind: Kind, pairs: Sequence[Pair], seed: int) -> SiamesePair:
    """What is trained: the published network, and for entailment a new head over its embeddings.

    Args:
        start: the published model.
        kind: of the labels.
        pairs: to train on; a new head is fitted to the length of their embeddings.
        seed: of a new head.
    """
    if kind != "entailment":
        return SiamesePair(start.network)
    tokens = PairTokens(pairs[:_LENGTH_PAIRS], start.tokenizer, TRAINED_TOKENS)
    with torch.no_grad():
        embeddings, _ = SiamesePair(start.network).eval().embeddings(*tokens.batch(np.arange(len(tokens))))
    length = float(embeddings.norm(dim=1).mean())
    torch.manual_seed(seed)
    head = PairHead(output_dim(start.network), len(LABELS), directed=True)
    return SiamesePair(start.network, ScaledHead(head, HEAD_LENGTH / max(length, 1e-6)))
