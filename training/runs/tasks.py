"""Runs of models with a head for each of several tasks: started, their objective, and the trained model loaded."""

from pathlib import Path

import torch

from contract.subwords import AnyTokenizer, Subwords
from contract.tokenizer import Tokenizer
from training.architectures import CrossEncoder, CrossEncoderConfig, PairWithHeads, PWIMTasksConfig, build_heads
from training.architectures.parts.layers import WordEmbedding
from training.architectures.transformer import SentenceBERT, SentenceBERTConfig, load_weights
from training.objectives.tasks import TasksConfig, TasksObjective
from training.recipes import find
from training.recipes.recipe import Recipe
from training.runs.folder import RunMissing, run_folder, weights_of
from training.runs.ratings import load_ratings
from training.runs.tables import load_table
from training.sources.source import needed
from training.sources.tables import PretrainedEncoder
from training.sources.tasks import TaskPairs
from training.teacher.encoder import bfloat16_is_fast
from training.teacher.weights import weights_folder

START_NAME = "start.pt"  # the weights that a cross-encoder started from
TOKENIZER_NAME = "tokenizer.json"  # in the folder of the run, as in the folder of the weights it starts from


def started_heads(recipe: Recipe, runs: Path, teacher: Path | None, seed: int) -> PairWithHeads:
    """The model as its training begins: the run it starts from; else published words or a published encoder, and heads
    drawn at random.

    Raises:
        RecipeError: it starts from an encoder, and no teacher was given.
        RunMissing: it starts from a word table or a run that is missing.
    """
    if recipe.start is not None:
        return load_heads(find(recipe.start), runs, seed)
    model = _untrained(recipe, runs, seed)
    if isinstance(model, CrossEncoder):
        assert isinstance(recipe.table, PretrainedEncoder)
        load_weights(model.bert, encoder_folder(recipe.table, runs, teacher))
    return model


def tokenizer_for(recipe: Recipe, runs: Path, teacher: Path | None) -> Tokenizer | Subwords:
    """What the model reads texts with: the word table's, or the `tokenizer.json` of a published encoder."""
    if isinstance(recipe.table, PretrainedEncoder):
        return Subwords.load(encoder_folder(recipe.table, runs, teacher) / TOKENIZER_NAME)
    return load_table(recipe.table, runs).tokenizer


def encoder_folder(table: PretrainedEncoder, runs: Path, teacher: Path | None) -> Path:
    """Where a published encoder lies: the given teacher's folder, or one that was fetched.

    Raises:
        RecipeError: it is the teacher's, and no teacher was given.
        RunMissing: it was not fetched; names the command.
    """
    if not table.packages:
        return needed(teacher, "a cross-encoder starts from")
    folder = weights_folder(runs, table.name)
    if not (folder / TOKENIZER_NAME).is_file():
        raise RunMissing(f"{folder} is not there: run `python -m training weights {table.name}` first")
    return folder


def tasks_objective(
    recipe: Recipe, model: PairWithHeads, tokenizer: AnyTokenizer, runs: Path, teacher: Path | None, seed: int
) -> TasksObjective:
    """The tasks on their corpora.

    Raises:
        CorpusError: a corpus is missing or malformed.
        RunMissing: the ratings of the model it learns from are missing.
    """
    assert isinstance(recipe.objective, TasksConfig)
    assert isinstance(recipe.data, TaskPairs)
    pairs = recipe.data.train(teacher, runs / "teacher")
    return TasksObjective(
        model,
        pairs,
        recipe.data.dev(),
        tokenizer,
        recipe.objective,
        max_tokens=recipe.max_tokens,
        batch_size=recipe.schedule.batch_size,
        seed=seed,
        low_precision=recipe.precision == "bfloat16" and bfloat16_is_fast(),
        ratings=load_ratings(runs, recipe.data.rated_by, pairs) if recipe.data.rated_by is not None else None,
    )


def load_heads(recipe: Recipe, runs: Path, seed: int) -> PairWithHeads:
    """The trained model of a run.

    Raises:
        RunMissing: it was not trained; names the command.
    """
    weights = weights_of(recipe, runs, seed)
    model = _untrained(recipe, runs, seed)
    model.load_state_dict(torch.load(weights, weights_only=True, map_location="cpu"))
    return model.eval()


def load_start(recipe: Recipe, runs: Path, seed: int) -> SentenceBERT:
    """The bi-encoder that a cross-encoder's run, or the first of its chain of runs, started from.

    Raises:
        RunMissing: the run did not keep it.
    """
    while recipe.start is not None:
        recipe = find(recipe.start)
    assert isinstance(recipe.architecture, CrossEncoderConfig)
    path = run_folder(runs, recipe, seed) / START_NAME
    if not path.is_file():
        raise RunMissing(f"{path} is not there: run `python -m training train {recipe.name} --seed {seed}` anew")
    model = SentenceBERT(SentenceBERTConfig(recipe.architecture.bert))
    model.bert.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    return model.eval()


def _untrained(recipe: Recipe, runs: Path, seed: int) -> PairWithHeads:
    assert isinstance(recipe.architecture, CrossEncoderConfig | PWIMTasksConfig)
    words = None
    if not isinstance(recipe.table, PretrainedEncoder):
        words = WordEmbedding(load_table(recipe.table, runs).rows)
    torch.manual_seed(seed)
    return build_heads(recipe.architecture, words)
