"""Trained runs and published models, as the analyses read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from contract.manifest import MANIFEST_NAME
from contract.tokenizer import Tokenizer
from training.analyses.analysis import AnalysisError
from training.architectures.models import SiameseModel
from training.objectives.development import encode_all
from training.objectives.parts.batches import Sentences
from training.pairs import Pair
from training.publishing.runtime import PublishedModel
from training.recipes import find
from training.recipes.recipe import Recipe
from training.runs.build import load_run

Floats = npt.NDArray[np.float64]
MODELS = Path("models")


@dataclass(frozen=True)
class Trained:
    """A trained model for inference."""

    recipe: Recipe
    model: SiameseModel
    tokenizer: Tokenizer


def load(name: str, seed: int, runs: Path) -> Trained:
    """A trained run by the name of its recipe.

    Raises:
        KeyError: no such recipe.
        RunMissing: it was not trained.
    """
    recipe = find(name)
    model, table = load_run(recipe, runs, seed)
    return Trained(recipe, model.eval(), table.tokenizer)


def published(model_id: str) -> PublishedModel:
    """A model of `models/`.

    Raises:
        AnalysisError: it is not published.
    """
    folder = MODELS / model_id
    if not (folder / MANIFEST_NAME).is_file():
        raise AnalysisError(f"{folder} is not published: run `python -m training publish {model_id}` first")
    return PublishedModel(folder)


def cosines(trained: Trained, pairs: Sequence[Pair]) -> Floats:
    """Cosine of both sides [n]; 0 where a vector is zero."""
    sides = ([pair.a for pair in pairs], [pair.b for pair in pairs])
    with torch.inference_mode():
        a, b = (
            encode_all(trained.model, Sentences(texts, trained.tokenizer, trained.recipe.max_tokens)).double()
            for texts in sides
        )
        return np.asarray(torch.cosine_similarity(a, b).cpu().numpy())
