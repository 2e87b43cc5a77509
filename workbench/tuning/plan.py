"""How each kind of published model is tuned: what of it moves, how fast, and what it learns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from semblance.threshold.own_pairs import Kind
from training.architectures import MGIMConfig, PWIMConfig, WordAveragingConfig
from training.architectures.models import InteractionModel, output_dim
from training.architectures.parts.heads import PairHead
from training.architectures.parts.layers import WordEmbedding
from training.architectures.transformer import SentenceBERTConfig
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens
from training.pairs import Pair
from training.recipes.recipe import OptimiserConfig, Schedule
from workbench.tuning.networks import HEAD_LENGTH, InteractionPair, ScaledHead, SiamesePair
from workbench.tuning.read_back import Start, TuneRefused

TRAINED_TOKENS = 128  # of a sentence in training; more are cut
ENOUGH_PAIRS, FEWEST_EPOCHS = 64_000, 2  # seen by averages in all
_LENGTH_PAIRS = 500  # on which the length of embeddings is measured


@dataclass(frozen=True)
class Plan:
    """Settings of a run."""

    optimiser: OptimiserConfig
    schedule: Schedule


AVERAGING = Plan(OptimiserConfig("adam", 1e-3, 1e-3), Schedule(10, 64, patience=3, decay="linear"))
GALLERY = Plan(OptimiserConfig("adam", 3e-4, None, clip=5.0), Schedule(5, 64, patience=2, decay="linear"))
INTERACTION = Plan(OptimiserConfig("adam", 2e-4, None, clip=5.0), Schedule(5, 16, patience=2, decay="linear"))
TRANSFORMER = Plan(OptimiserConfig("adamw", 2e-5, None, clip=1.0), Schedule(3, 32, decay="linear"))


def plan_for(start: Start, pairs: int, epochs: int | None, rate: float | None) -> Plan:
    """The settings of a kind of model for that many pairs, or with other epochs or another learning rate if given.

    Averages learn in their first thousand steps what they can: more epochs of many pairs fit words to single pairs.
    """
    match start.config:
        case WordAveragingConfig():
            plan = AVERAGING
        case PWIMConfig() | MGIMConfig():
            plan = INTERACTION
        case SentenceBERTConfig():
            plan = TRANSFORMER
        case _:
            plan = GALLERY
    most = plan.schedule.epochs
    if isinstance(start.config, WordAveragingConfig):
        most = min(most, max(FEWEST_EPOCHS, ENOUGH_PAIRS // pairs))
    schedule = replace(plan.schedule, epochs=epochs or most)
    optimiser = plan.optimiser
    if rate is not None:
        words = None if optimiser.embedding_learning_rate is None else rate
        optimiser = replace(optimiser, learning_rate=rate, embedding_learning_rate=words)
    return Plan(optimiser, schedule)


def classes_of(start: Start, kind: Kind, scale: tuple[float, float]) -> tuple[float, ...] | None:
    """The ratings of the model's outputs, moved onto the scale of the pairs; None: its answers are no ratings."""
    task = start.manifest.similarity
    if kind == "entailment" or task is None or task.classes is None:
        return None
    low, high = task.classes[0], task.classes[-1]
    moved = [scale[0] + (each - low) / (high - low) * (scale[1] - scale[0]) for each in task.classes]
    moved[-1] = scale[1]
    assert all(a < b for a, b in pairwise(moved))
    return tuple(moved)


def module_for(start: Start, kind: Kind, pairs: Sequence[Pair], seed: int) -> nn.Module:
    """What is trained: the published network, its words too where it has nothing else.

    Args:
        start: the published model.
        kind: of the labels.
        pairs: to train on; a new head is fitted to the length of their embeddings.
        seed: of a new head.

    Raises:
        TuneRefused: the model has no answer of that kind.
    """
    manifest, network = start.manifest, start.network
    task = manifest.similarity
    if isinstance(network, InteractionModel):
        if kind == "entailment":
            raise TuneRefused(f"{manifest.id}: it reads both texts for ratings, and has no output for entailment")
        return InteractionPair(network)
    if isinstance(start.config, WordAveragingConfig):
        network.embedding = WordEmbedding(_rows(network.embedding))
    if kind == "entailment":
        head = start.heads.get("entailment")
        return SiamesePair(network, None, _new_head(start, pairs, seed) if head is None else ScaledHead(head))
    if task is None:
        raise TuneRefused(f"{manifest.id}: it has no similarity; its tasks: {', '.join(manifest.tasks)}")
    if task.comparison is not None:
        return SiamesePair(network, task.comparison)
    if "similarity" not in start.heads:
        raise TuneRefused(f"{manifest.id}: its head {task.graph} is none that is known here")
    return SiamesePair(network, None, ScaledHead(start.heads["similarity"]))


@torch.no_grad()
def _rows(embedding: nn.Module | torch.Tensor) -> np.ndarray:
    """Every row of an embedding in float32 [V, D]."""
    assert isinstance(embedding, nn.Module)
    size = next(iter([*embedding.buffers(), *embedding.parameters()])).shape[0]
    found: np.ndarray = embedding(torch.arange(size)[None]).squeeze(0).float().numpy()
    return found


@torch.no_grad()
def _new_head(start: Start, pairs: Sequence[Pair], seed: int) -> ScaledHead:
    tokens = PairTokens(pairs[:_LENGTH_PAIRS], start.tokenizer, TRAINED_TOKENS)
    probe = SiamesePair(start.network, "cosine").eval()
    length = float(probe.embeddings(*tokens.batch(np.arange(len(tokens))))[0].norm(dim=1).mean())
    torch.manual_seed(seed)
    head = PairHead(output_dim(start.network), len(LABELS), directed=True)
    return ScaledHead(head, HEAD_LENGTH / max(length, 1e-6))
