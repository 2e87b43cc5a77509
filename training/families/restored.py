"""A published cross-encoder as a finished run, for another run to go on from.

A run takes hours and is not kept; what is published of it are its weights, in int8. With these in the place of its own
a recipe that starts from it (`Recipe.start`) can be trained on any machine.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from core.files import replacing
from core.manifest import Manifest
from training.families import family_of
from training.families.interaction import PAIR
from training.families.siamese import ENCODER
from training.families.transformer import START_NAME
from training.families.words import TOKENIZER
from training.models import CrossEncoderConfig
from training.publish.network_graph import stored_weights
from training.recipes import RECIPES
from training.recipes.sources.source import RecipeError
from training.train.folder import WEIGHTS_NAME, record_recipe


def restore(folder: Path, runs: Path) -> Path:
    """Write the weights of a published model as those of the run that was published; returns the run's folder.

    A head that is not served is drawn at random: only the served ones are published.

    Args:
        folder: of the published model, with the bi-encoder that it is blended with.
        runs: where the run's folder goes.

    Raises:
        RecipeError: the model is no cross-encoder of a recipe that is here.
        ManifestError, ArtifactError: it is no model folder, or incomplete.
        RecipeChangedError: a run with other settings was begun in the run's folder.
    """
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    made = manifest.provenance
    recipe = RECIPES.get(str(made.recipe.get("name")))
    if recipe is None or not isinstance(recipe.architecture, CrossEncoderConfig) or ENCODER not in manifest.files:
        raise RecipeError(f"{folder} is no cross-encoder that one of our recipes trained and blended")
    family = family_of(recipe, runs, made.seed or 0)
    own = family.initial_model().state_dict()
    found = _weights(folder, manifest, PAIR, "model.")
    served = {name for name in own if not name.startswith("heads.")}
    if not served <= found.keys() or any(own[name].shape != found[name].shape for name in found.keys() & own.keys()):
        raise RecipeError(f"{folder} holds another model than the recipe {recipe.name} makes")
    family.folder.mkdir(parents=True, exist_ok=True)
    record_recipe(family.folder, recipe, family.seed)
    shutil.copyfile(manifest.path_of(folder, manifest.tokenizer), family.folder / TOKENIZER)
    _save(_weights(folder, manifest, ENCODER, "network."), family.folder / START_NAME)
    # Last: with it the run is a finished one.
    _save({name: found.get(name, value) for name, value in own.items()}, family.folder / WEIGHTS_NAME)
    return family.folder


def _save(weights: Mapping[str, Tensor], path: Path) -> None:
    with replacing(path) as partial:
        torch.save(weights, partial)


def _weights(folder: Path, manifest: Manifest, graph: str, prefix: str) -> dict[str, Tensor]:
    """The weights of a graph by their names in the module, which the exported one calls by the prefix."""
    weights, _ = stored_weights(folder, manifest, graph)
    own = {name: value for name, value in weights.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): torch.from_numpy(value.copy()) for name, value in own.items()}
