"""What is kept of a trained model beside the weights of its published encoder: low-rank updates and heads, 5 MB."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from training.models import CrossEncoder
from training.recipes.recipe import Recipe

FOLDER = Path(__file__).parents[1] / "teacher" / "learnt"


def learnt_file(recipe: Recipe) -> Path:
    """Where what a recipe's run learnt is kept, beside the weights of a published encoder."""
    return FOLDER / f"{recipe.name}.npz"


def learnt_names(model: nn.Module) -> set[str]:
    """The names of what is kept of a trained model.

    Raises:
        TypeError: the model learns all of its weights.
    """
    if not isinstance(model, CrossEncoder) or not model.config.bert.update_rank:
        raise TypeError("only low-rank updates are kept: this model learns all of its weights")
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def add_learnt(recipe: Recipe, model: CrossEncoder) -> None:
    """Copy what is kept of a recipe's run into a model with the weights of its published encoder.

    Raises:
        ValueError: the file is of another model.
    """
    with np.load(learnt_file(recipe), allow_pickle=False) as found:
        if set(found.files) != learnt_names(model):
            raise ValueError(f"{learnt_file(recipe)} holds another model than {recipe.name}")
        learnt = {name: torch.from_numpy(found[name]).float() for name in found.files}
    model.load_state_dict(learnt, strict=False)
