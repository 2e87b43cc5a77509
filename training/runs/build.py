"""The model of a recipe: built, given the weights of the run it starts from, loaded after training."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from contract.tokenizer import Tokenizer
from training.architectures import (
    MGIM,
    CrossEncoderConfig,
    MGIMConfig,
    PWIMConfig,
    PWIMTasksConfig,
    build_encoder,
    build_interaction,
)
from training.architectures.models import InteractionModel, SiameseModel, output_dim
from training.architectures.parts.heads import PairHead, SentenceHead
from training.architectures.parts.layers import WordEmbedding
from training.architectures.parts.svm import SupportVectorHead
from training.objectives.manhattan import ManhattanConfig
from training.objectives.pairwise import PairwiseConfig
from training.objectives.sentiment import LABELS as SENTIMENTS
from training.objectives.sentiment import SentimentConfig
from training.objectives.supervised import LABELS, SupervisedConfig
from training.recipes import find
from training.recipes.recipe import Recipe
from training.runs.folder import WEIGHTS_NAME, run_folder, weights_of
from training.runs.malstm_finish import ENTAILMENT_NAME
from training.runs.tables import load_table
from training.words.tables import WordTable


def started(recipe: Recipe, table: WordTable, runs: Path, seed: int) -> SiameseModel | InteractionModel:
    """The model of a recipe as its training begins.

    Raises:
        RunMissing: the run it starts from was not trained.
    """
    start_seed = seed if recipe.start_seed is None else recipe.start_seed
    model: SiameseModel | InteractionModel
    if isinstance(recipe.objective, PairwiseConfig):
        model = build_interaction_model(recipe, table, seed)
        if recipe.start is not None:
            continue_from(model, weights_of(find(recipe.start), runs, start_seed))
    else:
        model = build_model(recipe, table, seed)
        if recipe.start is not None:
            start_from(model, find(recipe.start), runs, start_seed)
    if recipe.row_scale != 1.0:
        with torch.no_grad():
            model.embedding.weight.mul_(recipe.row_scale)
            model.embedding.start.mul_(recipe.row_scale)
    return model


def build_model(recipe: Recipe, table: WordTable, seed: int) -> SiameseModel:
    """The untrained model of a recipe whose architecture reads one sentence at a time."""
    assert not isinstance(recipe.architecture, PWIMConfig | MGIMConfig | CrossEncoderConfig | PWIMTasksConfig)
    torch.manual_seed(seed)
    rows = random_rows(table, seed) if recipe.random_start else table.rows
    encoder = build_encoder(recipe.architecture, WordEmbedding(rows))
    dim, heads = output_dim(encoder), dict[str, PairHead | SentenceHead]()
    match recipe.objective:
        case SupervisedConfig() as config:
            if config.classes:
                heads["similarity"] = PairHead(dim, len(config.classes), config.hidden)
            if config.entailment_weight > 0:
                heads["entailment"] = PairHead(dim, len(LABELS), config.hidden, directed=config.directed)
        case ManhattanConfig() as config:
            if config.entailment_weight > 0:
                heads["entailment"] = PairHead(dim, len(LABELS))
        case SentimentConfig() as config:
            heads["sentiment"] = SentenceHead(dim, len(SENTIMENTS), config.hidden)
    return SiameseModel(encoder, heads, recipe.precision)


def build_interaction_model(recipe: Recipe, table: WordTable, seed: int) -> InteractionModel:
    """The untrained model of a recipe whose objective is pairwise."""
    assert isinstance(recipe.architecture, PWIMConfig | MGIMConfig)
    assert isinstance(recipe.objective, PairwiseConfig)
    torch.manual_seed(seed)
    rows = random_rows(table, seed) if recipe.random_start else table.rows
    network = build_interaction(recipe.architecture, WordEmbedding(rows), len(recipe.objective.classes))
    mark_numbers(network, table.tokenizer)
    return InteractionModel(network, both_orders=recipe.objective.both_orders)


def mark_numbers(network: nn.Module, tokenizer: Tokenizer) -> None:
    """Tell an MGIM that counts shared numbers which ids of the vocabulary have a digit."""
    if isinstance(network, MGIM) and network.config.shared_words:
        words = [tokenizer.token(i) for i in range(len(tokenizer))]  # a bucket of unknown words is "<bucket 7>"
        network.mark_numbers([not word.startswith("<") and any(c.isdigit() for c in word) for word in words])


def random_rows(table: WordTable, seed: int) -> npt.NDArray[np.float32]:
    """Rows of the table's shape drawn at random, that of the padding zero."""
    rows = np.random.default_rng(seed).normal(0.0, 0.1, table.rows.shape).astype(np.float32)
    rows[0] = 0.0
    return rows


def start_from(model: SiameseModel, recipe: Recipe, runs: Path, seed: int) -> None:
    """Copy a trained encoder into a new model, the "universal" start; of another architecture, its words only.

    With the encoder go the heads that both have. Falls back to seed 1 of that recipe.
    """
    if not (run_folder(runs, recipe, seed) / WEIGHTS_NAME).is_file():
        seed = 1
    trained, _ = load_run(recipe, runs, seed)
    if type(trained.encoder) is type(model.encoder):
        model.encoder.load_state_dict(trained.encoder.state_dict())
        for task, head in model.heads.items():
            if task in trained.heads and type(trained.heads[task]) is type(head):
                head.load_state_dict(trained.heads[task].state_dict())
    else:
        with torch.no_grad():
            model.embedding.weight.copy_(trained.embedding.weight)
    model.embedding.start.copy_(model.embedding.weight.detach())


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


def load_run(recipe: Recipe, runs: Path, seed: int) -> tuple[SiameseModel, WordTable]:
    """A trained model and its word table.

    Raises:
        RunMissing: it was not trained; names the command.
    """
    path = weights_of(recipe, runs, seed)
    table = load_table(recipe.table, runs)
    model = build_model(recipe, table, seed)
    model.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    if (fitted := path.with_name(ENTAILMENT_NAME)).is_file():
        model.heads["entailment"] = SupportVectorHead.from_state(torch.load(fitted, weights_only=True))
    return model, table


def load_interaction_run(recipe: Recipe, runs: Path, seed: int) -> tuple[InteractionModel, WordTable]:
    """A trained interaction model and its word table; raises like `load_run`."""
    path = weights_of(recipe, runs, seed)
    table = load_table(recipe.table, runs)
    model = build_interaction_model(recipe, table, seed)
    model.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    return model, table
