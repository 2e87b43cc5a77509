"""Interaction models around a recipe: built, started from another run, loaded."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from training.architectures import MGIMConfig, PWIMConfig, build_interaction
from training.layers import WordEmbedding
from training.models import InteractionModel
from training.objectives.pairwise import PairwiseConfig
from training.recipe import Recipe
from training.tables import WordTable


def build_interaction_model(recipe: Recipe, table: WordTable, seed: int) -> InteractionModel:
    """The untrained model of a recipe whose objective is pairwise.

    Raises:
        TypeError: the recipe's architecture reads one sentence at a time.
    """
    if not isinstance(recipe.architecture, PWIMConfig | MGIMConfig):
        raise TypeError(f"{recipe.name}: {type(recipe.architecture).__name__} is no interaction model")
    assert isinstance(recipe.objective, PairwiseConfig)
    torch.manual_seed(seed)
    rows = random_rows(table, seed) if recipe.random_start else table.rows
    network = build_interaction(recipe.architecture, WordEmbedding(rows), len(recipe.objective.classes))
    return InteractionModel(network, both_orders=recipe.objective.both_orders)


def random_rows(table: WordTable, seed: int) -> npt.NDArray[np.float32]:
    """Rows of the table's shape drawn at random, that of the padding zero."""
    rows = np.random.default_rng(seed).normal(0.0, 0.1, table.rows.shape).astype(np.float32)
    rows[0] = 0.0
    return rows


def continue_from(model: InteractionModel, weights: Path) -> None:
    """Copy the weights of another run that have the same name and shape; an output of other classes starts anew.

    Raises:
        ValueError: nothing but the words fits.
    """
    found = torch.load(weights, weights_only=True, map_location="cpu")
    own = model.state_dict()
    fitting = {name: value for name, value in found.items() if name in own and own[name].shape == value.shape}
    if set(fitting) <= {"network.embedding.weight"}:
        raise ValueError(f"{weights} holds another architecture")
    model.load_state_dict(fitting, strict=False)
    model.embedding.start.copy_(model.embedding.weight.detach())
