"""What differs between families of models when one is trained and published.

`training.train.run` and `training.publish.publish` know no more of a family than this protocol.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import nn

from core.golden import GOLDEN_TEXTS
from core.manifest import Manifest
from core.subwords import AnyTokenizer
from training.data.words.tables import WordTable
from training.objectives.objective import Objective
from training.recipes.recipe import Publication, Recipe
from training.train.folder import run_folder, weights_of
from training.train.tables import load_table

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class ModelFamily(ABC, Generic[Model]):
    """The run of a recipe with a seed; `training.families.family_of` chooses the subclass of its family of models."""

    recipe: Recipe
    runs: Path  # where word tables and runs lie
    seed: int
    start: "ModelFamily[Any] | None"  # the run that this one starts from

    uses_gpu: ClassVar[bool] = True  # in training, where there is one

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return run_folder(self.runs, self.recipe, self.seed)

    @cached_property
    def table(self) -> WordTable:
        """The word table of the recipe; raises like `load_table`."""
        return load_table(self.recipe.table, self.runs)

    def tokenizer(self, teacher: Path | None) -> AnyTokenizer:
        """What a model reads texts with in training."""
        return self.table.tokenizer

    def data(self, teacher: Path | None) -> tuple[Any, Any]:
        """The training part and the development part of the recipe's data.

        Raises:
            RecipeError: the data need a teacher and none was given.
            CorpusError: a corpus is missing or malformed.
        """
        return self.recipe.data.train(teacher, self.runs / "teacher"), self.recipe.data.dev()

    @abstractmethod
    def initial_model(self) -> Model:
        """The model as its seed draws it."""

    @abstractmethod
    def initialise_from(self, start: "ModelFamily[Any]", model: Model) -> None:
        """Copy what fits of a trained run into a new model.

        Raises:
            RunMissing: the run was not trained.
        """

    def build(self, teacher: Path | None) -> Model:
        """The model as its training begins; `teacher` is the folder of the teacher, where one was given.

        Raises:
            RunMissing: the word table or the run that this one starts from is missing.
            RecipeError: it begins with the teacher's weights and none was given.
        """
        model = self.initial_model()
        if self.start is not None:
            self.initialise_from(self.start, model)
        return model.to("cuda" if self.uses_gpu and torch.cuda.is_available() else "cpu")

    @abstractmethod
    def objective(self, model: Model, teacher: Path | None) -> Objective:
        """What trains the model, on the recipe's `data`; training texts are cut at its `max_tokens`."""

    def after_training(self, objective: Objective, teacher: Path | None) -> None:
        """Do what comes after the training: change the model, or write more files to the run's folder."""

    def load(self) -> Model:
        """The model with its trained weights.

        Raises:
            RunMissing: it was not trained; names the command.
        """
        weights = weights_of(self.recipe, self.runs, self.seed)
        model = self.initial_model()
        model.load_state_dict(torch.load(weights, weights_only=True, map_location="cpu"))
        return model.eval()

    @abstractmethod
    def export(self, publication: Publication, folder: Path) -> dict[str, Any]:
        """Export the trained model and its words.

        Args:
            publication: how they are stored.
            folder: of the model, whose name is its id; what can be shared goes beside it.

        Returns:
            The fields of the manifest that depend on the model; `shared` are the entries of shared files.

        Raises:
            RunMissing: it was not trained.
            ParityError, GraphMismatchError: an exported graph does not compute what was trained.
        """

    def calibrate(self, manifest: Manifest, folder: Path) -> Manifest:
        """The manifest with the calibrations that are fitted to answers of the exported graphs."""
        return manifest

    def golden_texts(self, max_tokens: int) -> list[tuple[str, str]]:
        """Pairs of texts for the golden answers, without those that rounding, which differs by machine, decides."""
        return list(GOLDEN_TEXTS)
