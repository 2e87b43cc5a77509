"""Run a recipe: build model and objective, train, save the finished weights."""

import copy
import logging
from pathlib import Path

import numpy as np
import torch

from training.architectures import CrossEncoder
from training.architectures.models import SiameseModel
from training.objectives.manhattan import ManhattanObjective
from training.objectives.pairwise import PairwiseObjective
from training.objectives.parts.batches import Sentences
from training.objectives.supervised import LabelledPairs
from training.objectives.tasks import TasksConfig
from training.objectives.teacher_cosine import TeacherCosineObjective
from training.recipes.recipe import Recipe
from training.runs.build import started
from training.runs.data import build_objective
from training.runs.folder import WEIGHTS_NAME, record_recipe, run_folder
from training.runs.loop import Result, train
from training.runs.malstm_finish import finish
from training.runs.regression import begin_at_regression
from training.runs.tables import load_table
from training.runs.tasks import START_NAME, TOKENIZER_NAME, started_heads, tasks_objective, tokenizer_for
from training.sources.rated import supervised_pairs
from training.words.tables import WordTable
from training.words.unseen import map_unseen

logger = logging.getLogger(__name__)


def run(
    recipe: Recipe,
    runs: Path,
    teacher: Path | None,
    seed: int,
) -> Result:
    """Train a recipe, or resume it; writes the finished weights to `runs/<recipe>/seed-<n>/model.pt`.

    Raises:
        RunMissing: the word table or the run this one starts from is missing.
        RecipeError: the data need a teacher and none was given.
        RecipeChangedError: the folder has a run of another recipe or of other settings.
        CorpusError: a corpus is missing or malformed.
    """
    folder = run_folder(runs, recipe, seed)
    folder.mkdir(parents=True, exist_ok=True)
    logger.info("%s seed %d: reading %s", recipe.name, seed, type(recipe.data).__name__)
    if isinstance(recipe.objective, TasksConfig):
        return _run_tasks(recipe, runs, teacher, seed, folder)
    table = load_table(recipe.table, runs)
    model = started(recipe, table, runs, seed)
    model.to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    objective = build_objective(recipe, model, table.tokenizer, runs, teacher, seed)
    if isinstance(objective, PairwiseObjective):
        begin_at_regression(objective.model, objective.training)
    record_recipe(folder, recipe, seed)
    start = copy.deepcopy(model.state_dict()) if isinstance(objective, ManhattanObjective) else {}
    result = train(objective, recipe.optimiser, recipe.schedule, folder, seed=seed)
    if isinstance(objective, ManhattanObjective):
        labelled = LabelledPairs(supervised_pairs(), table.tokenizer, recipe.max_tokens)
        finish(objective, start, labelled, recipe, folder, seed)
    if recipe.map_unseen and isinstance(objective, TeacherCosineObjective):
        assert isinstance(model, SiameseModel)
        _map_unseen(model, objective.sentences, table)
        with torch.no_grad():
            logger.info("development after mapping unseen rows: %.4f", objective.evaluate()["selection"])
    torch.save(model.state_dict(), folder / WEIGHTS_NAME)
    return result


def _run_tasks(recipe: Recipe, runs: Path, teacher: Path | None, seed: int, folder: Path) -> Result:
    model = started_heads(recipe, runs, teacher, seed)
    tokenizer = tokenizer_for(recipe, runs, teacher)
    objective = tasks_objective(recipe, model, tokenizer, runs, teacher, seed)
    record_recipe(folder, recipe, seed)
    tokenizer.save(folder / TOKENIZER_NAME)
    if isinstance(model, CrossEncoder) and recipe.start is None:
        torch.save(model.bert.state_dict(), folder / START_NAME)
    result = train(objective, recipe.optimiser, recipe.schedule, folder, seed=seed)
    torch.save(model.state_dict(), folder / WEIGHTS_NAME)
    return result


def _map_unseen(model: SiameseModel, sentences: Sentences, table: WordTable) -> None:
    seen = np.bincount(sentences.flat, minlength=len(table.tokenizer)).astype(np.int64)
    weight = model.embedding.weight
    rows = map_unseen(table.rows, weight.detach().cpu().numpy(), seen)
    with torch.no_grad():
        weight.copy_(torch.from_numpy(rows))
