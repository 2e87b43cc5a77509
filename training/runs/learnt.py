"""What a model learnt beside published weights: its low-rank updates and heads, in one small file of the repository.

With the published encoder, which `python -m training weights` fetches, it is the trained model again, so that a teacher
of 110 million weights is kept in 5 MB.
"""

from pathlib import Path

import numpy as np
import torch

from training.architectures import CrossEncoder
from training.recipes.recipe import Recipe
from training.records import replacing
from training.runs.folder import RunMissing
from training.runs.tasks import load_heads, started_heads

FOLDER = Path(__file__).parents[1] / "teacher" / "learnt"


def learnt_file(recipe: Recipe) -> Path:
    """Where what a recipe's run learnt is kept."""
    return FOLDER / f"{recipe.name}.npz"


def save_learnt(recipe: Recipe, runs: Path, seed: int) -> Path:
    """Keep what a finished run learnt, in float16.

    Raises:
        RunMissing: it was not trained; names the command.
        TypeError: its model learns all of its weights.
    """
    model = load_heads(recipe, runs, seed)
    names = _learnt_names(model)
    path = learnt_file(recipe)
    path.parent.mkdir(exist_ok=True)
    learnt = {name: value.half().numpy() for name, value in model.state_dict().items() if name in names}
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **learnt)
    return path


def load_learnt(recipe: Recipe, runs: Path) -> CrossEncoder:
    """The trained model, from the published weights and the file that is kept.

    Raises:
        RunMissing: the published weights were not fetched, or nothing is kept; names the command.
        ValueError: the file is of another model.
    """
    path = learnt_file(recipe)
    if not path.is_file():
        raise RunMissing(f"{path} is not there: run `python -m training keep {recipe.name}` first")
    model = started_heads(recipe, runs, None, seed=0)
    names = _learnt_names(model)
    with np.load(path, allow_pickle=False) as found:
        if set(found.files) != names:
            raise ValueError(f"{path} holds another model than {recipe.name}")
        learnt = {name: torch.from_numpy(found[name]).float() for name in found.files}
    model.load_state_dict(learnt, strict=False)
    assert isinstance(model, CrossEncoder)
    return model.eval()


def _learnt_names(model: torch.nn.Module) -> set[str]:
    if not isinstance(model, CrossEncoder) or not model.config.bert.update_rank:
        raise TypeError("only low-rank updates are kept: this model learns all of its weights")
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}
