"""A published cross-encoder as a finished run, for another run to go on from.

A run takes hours and is not kept; what is published of it are its weights, in int8. With these in the place of the
run's own a recipe that starts from it (`Recipe.start`) can be trained on any machine.
"""

import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core.manifest import Manifest
from training.families.interaction import PAIR
from training.families.siamese import ENCODER
from training.families.transformer import START_NAME, CrossEncoderFamily
from training.families.words import TOKENIZER
from training.publish.network_graph import stored_weights
from training.recipes.sources.source import RecipeError
from training.records import replacing
from training.train.family import ModelFamily
from training.train.folder import WEIGHTS_NAME, record_recipe


def restore(family: ModelFamily[Any], folder: Path) -> Path:
    """Write the weights of a published model as those of a run; returns the run's folder.

    A head that is not served is drawn at random: only the served ones are published.

    Args:
        family: of the run, which was published as this model.
        folder: of the published model, with the bi-encoder that it is blended with.

    Raises:
        RecipeError: the model is no cross-encoder, or not of the recipe's sizes.
        ManifestError, ArtifactError: it is no model folder, or incomplete.
        RecipeChangedError: a run with other settings was begun in the run's folder.
    """
    if not isinstance(family, CrossEncoderFamily):
        raise RecipeError(f"{family.recipe.name} is no cross-encoder: train it")
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    if missing := {PAIR, ENCODER} - manifest.files.keys():
        raise RecipeError(f"{folder} has no {min(missing)}: it is no cross-encoder that was published with a blend")
    model = family.initial_model()
    own = model.state_dict()
    found = _weights(folder, manifest, PAIR, "model.")
    wrong = [
        name
        for name, value in own.items()
        if (name in found and found[name].shape != value.shape) or (name not in found and not name.startswith("heads."))
    ]
    if wrong:
        raise RecipeError(f"{folder} holds another model than {family.recipe.name}: {wrong[0]}")
    family.folder.mkdir(parents=True, exist_ok=True)
    record_recipe(family.folder, family.recipe, family.seed)
    for name, weights in (
        (START_NAME, _weights(folder, manifest, ENCODER, "network.")),
        (
            WEIGHTS_NAME,
            {name: found.get(name, value) for name, value in own.items()},
        ),  # last: it is what makes a run finished
    ):
        with replacing(family.folder / name) as partial:
            torch.save(weights, partial)
    shutil.copyfile(manifest.path_of(folder, manifest.tokenizer), family.folder / TOKENIZER)
    return family.folder


def _weights(folder: Path, manifest: Manifest, graph: str, prefix: str) -> dict[str, Tensor]:
    """The weights of a graph by their names in the module, which the exported one calls by the prefix."""
    weights, _ = stored_weights(folder, manifest, graph)
    own = {name: value for name, value in weights.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): torch.from_numpy(value.copy()) for name, value in own.items()}
