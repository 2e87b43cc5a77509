"""A cross-encoder's run: the model started from published weights, its objective, and the trained model loaded."""

from pathlib import Path

import torch

from training.architectures import CrossEncoder, CrossEncoderConfig
from training.architectures.transformer import load_weights
from training.objectives.tasks import Encodes, TasksConfig, TasksObjective
from training.recipes.recipe import Recipe
from training.runs.folder import weights_of
from training.sources.source import needed
from training.sources.tasks import TaskPairs

TOKENIZER_NAME = "tokenizer.json"  # in the folder of the run, as in the folder of the weights it starts from


def started_cross(recipe: Recipe, teacher: Path | None, seed: int) -> CrossEncoder:
    """The model as its training begins: the published encoder, and heads drawn at random.

    Raises:
        RecipeError: no teacher was given.
    """
    model = untrained(recipe, seed)
    load_weights(model.bert, needed(teacher, "a cross-encoder starts from"))
    return model


def untrained(recipe: Recipe, seed: int) -> CrossEncoder:
    """The model with random weights."""
    assert isinstance(recipe.architecture, CrossEncoderConfig)
    torch.manual_seed(seed)
    return CrossEncoder(recipe.architecture)


def cross_objective(
    recipe: Recipe, model: CrossEncoder, tokenizer: Encodes, runs: Path, teacher: Path | None, seed: int
) -> TasksObjective:
    """The tasks on their corpora.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """
    assert isinstance(recipe.objective, TasksConfig)
    assert isinstance(recipe.data, TaskPairs)
    return TasksObjective(
        model,
        recipe.data.train(teacher, runs / "teacher"),
        recipe.data.dev(),
        tokenizer,
        recipe.objective,
        max_tokens=recipe.max_tokens,
        batch_size=recipe.schedule.batch_size,
        seed=seed,
        low_precision=recipe.precision == "bfloat16",
    )


def load_cross(recipe: Recipe, runs: Path, seed: int) -> CrossEncoder:
    """A trained cross-encoder.

    Raises:
        RunMissing: it was not trained; names the command.
    """
    model = untrained(recipe, seed)
    model.load_state_dict(torch.load(weights_of(recipe, runs, seed), weights_only=True, map_location="cpu"))
    return model.eval()
