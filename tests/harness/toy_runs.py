"""Toy recipes trained and published: a folder of runs with the toy words, and corpora of a few pairs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from core.manifest import Manifest
from tests.harness import toys
from training.data.pairs import Pair
from training.families import family_of
from training.models import WordAveragingConfig
from training.objectives.supervised import SupervisedConfig
from training.publish import publish
from training.recipes import RECIPES
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.sources.credits import TEACHER
from training.recipes.sources.rated import SickPairs
from training.recipes.sources.tasks import TaskPairs
from training.train.family import ModelFamily
from training.train.folder import WEIGHTS_NAME
from training.train.run import run

RECIPE = Recipe(
    name="toy-sick",
    reaches="nothing",
    table=toys.TABLE,
    architecture=WordAveragingConfig(),
    data=SickPairs(),
    objective=SupervisedConfig(entailment_weight=1.0, hidden=4),
    optimiser=OptimiserConfig(learning_rate=0.05, embedding_learning_rate=0.05),
    schedule=Schedule(epochs=3, batch_size=2),
    publication=Publication("toy-sick", "A toy"),
)
READERS = {
    "pairwise": "training.data.pairwise.read",  # of a corpus
    "labelled": "training.data.readers.labelled_pairs.read",  # of a name in its table
    "split": "training.data.sts_split.read",  # of a seed
    "transfer": "training.data.transfer.read",  # of a set
    "year": "training.data.readers.sts.read_year",
    "paraphrases": "training.data.mixtures.paraphrase_pairs",
}


def read_instead(monkeypatch: pytest.MonkeyPatch, **corpora: Callable[..., Any]) -> None:
    """Give what these functions do for the corpora of that name in `READERS`."""
    for name, read in corpora.items():
        monkeypatch.setattr(READERS[name], read)


def runs_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *recipes: Recipe, **corpora: Callable[..., Any]) -> Path:
    """A folder of runs with the toy table; recipes that others start from, and corpora as of `read_instead`."""
    toys.table().save(folder / "runs" / "tables" / "toy")
    for recipe in recipes:
        monkeypatch.setitem(RECIPES, recipe.name, recipe)
    read_instead(monkeypatch, **corpora)
    monkeypatch.setattr(publish, "training_data_for", lambda recipe: (TEACHER,))
    return folder / "runs"


def trained(recipe: Recipe, runs: Path, seed: int = 1, teacher: Path | None = None) -> ModelFamily[Any]:
    """Train a recipe, or go on with it; returns the run."""
    run(family_of(recipe, runs, seed), teacher)
    return family_of(recipe, runs, seed)


def as_begun(recipe: Recipe, runs: Path, scale: float = 1.0) -> ModelFamily[Any]:
    """A run whose weights are those it would begin with, its words times the scale."""
    family = family_of(recipe, runs, 1)
    model = family.initial_model()
    with torch.no_grad():
        model.embedding.weight.mul_(scale)
    family.folder.mkdir(parents=True)
    torch.save(model.state_dict(), family.folder / WEIGHTS_NAME)
    return family


def published(family: ModelFamily[Any], **more: Any) -> tuple[Path, Manifest]:
    """Publish a run beside the folder of runs, into `models` and `figures`; its folder, and its verified manifest."""
    place = family.folder.parents[2]
    folder = publish.publish(family, place / "models", place / "figures", **more)
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    return folder, manifest


def given(train: Mapping[str, Sequence[Pair]], **dev: Sequence[Pair]) -> type[TaskPairs]:
    """Pairs of several tasks that are these, of no corpus."""
    return type("Given", (TaskPairs,), {"train": lambda *_: train, "dev": lambda _: dev})
