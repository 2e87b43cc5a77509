"""Models of several tasks as teachers: what a trained one learnt is kept, and it or a published one rates pairs.

What a teacher learnt beside published weights (its low-rank updates and heads) is one small file of the repository.
With the published encoder, which `python -m training weights` fetches, it is the trained model again, so that a teacher
of 110 million weights is kept in 5 MB. Ratings: G. Hinton, O. Vinyals, J. Dean, "Distilling the Knowledge in a Neural
Network", 2015; a folder for each model, `runs/ratings/<model>/`, and in it a file for each corpus.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit, softmax

from core.files import replacing
from training.data.pairs import Pair
from training.data.tasks import DEVELOPMENT
from training.families import family_of
from training.families.heads import ratings_file, save_ratings
from training.families.updates import add_learnt, learnt_file, learnt_names
from training.models import CrossEncoder
from training.models.kinds import device_of
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens, Rated, measure, predict
from training.progress import tracked
from training.publish.runtime import PublishedModel
from training.recipes import find
from training.recipes.recipe import Recipe
from training.recipes.sources.source import RecipeError
from training.recipes.sources.tasks import TaskPairs
from training.recipes.teacher import TEACHERS
from training.teacher.encoder import bfloat16_is_fast
from training.train.folder import RunMissing

logger = logging.getLogger(__name__)

CHUNK = 4_000  # pairs between two marks of the progress bar


def rate(recipe: Recipe, models: Path, runs: Path, teacher: Path | None) -> int:
    """Write the ratings that `train` needs. Returns the pairs rated.

    Left out are corpora that are rated already, and those that the recipe learns without ratings.

    Args:
        recipe: what is to be trained.
        models: where model folders live.
        runs: where the ratings go.
        teacher: the encoder whose cosines are among the pairs.

    Raises:
        RecipeError: the recipe names no model to learn from.
        ArtifactError: its folder is missing or broken.
    """
    if not isinstance(recipe.data, TaskPairs) or recipe.data.rated_by is None:
        raise RecipeError(f"recipe {recipe.name!r} learns from no published model")
    name = recipe.data.rated_by
    model = TrainedTeacher(find(name), runs) if name in TEACHERS else PublishedModel(models / name)
    rated = 0
    for corpus, pairs in recipe.data.rated(recipe.data.train(teacher, runs / "teacher")).items():
        path = ratings_file(runs, name, corpus, pairs)
        if path.is_file():
            continue
        rows = np.random.default_rng(0).permutation(len(pairs))[: recipe.data.rated_pairs]
        rows.sort()
        save_ratings(path, _rated(model, pairs, rows, corpus))
        rated += len(rows)
    return rated


class TrainedTeacher:
    """A model of several tasks that is kept for teaching and not served."""

    def __init__(self, recipe: Recipe, runs: Path) -> None:
        """Load it; raises like `load_learnt`."""
        self._model = load_learnt(recipe, runs).to("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer = family_of(recipe, runs, seed=0).tokenizer(None)
        self._max_tokens = recipe.max_tokens

    def probabilities(self, a: Sequence[str], b: Sequence[str], labels: Sequence[str]) -> dict[str, np.ndarray]:
        """Of each task for n pairs: entailment [n, 3] in the order of `labels`, others [n, 1]."""
        if tuple(labels) != LABELS:
            raise ValueError(f"its labels are {', '.join(LABELS)}")
        outputs = self.outputs([Pair(*each) for each in zip(a, b, strict=True)])
        return {
            task: softmax(output, axis=1) if task == "entailment" else expit(output) for task, output in outputs.items()
        }

    def outputs(self, pairs: Sequence[Pair]) -> dict[str, np.ndarray]:
        """Of each task the raw outputs for n pairs [n, K]."""
        with torch.autocast(device_of(self._model).type, torch.bfloat16, enabled=bfloat16_is_fast()):
            return predict(self._model, PairTokens(pairs, self._tokenizer, self._max_tokens))


def _rated(model: PublishedModel | TrainedTeacher, pairs: Sequence[Pair], rows: np.ndarray, corpus: str) -> Rated:
    found: dict[str, list[np.ndarray]] = {}
    for start in tracked(range(0, len(rows), CHUNK), f"{corpus}: chunks of {CHUNK} pairs"):
        chunk = [pairs[i] for i in rows[start : start + CHUNK]]
        for task, values in model.probabilities([p.a for p in chunk], [p.b for p in chunk], LABELS).items():
            found.setdefault(task, []).append(values)
    return Rated(rows, {task: np.concatenate(parts).astype(np.float32) for task, parts in found.items()})


def save_learnt(recipe: Recipe, runs: Path, seeds: Sequence[int]) -> Path:
    """Keep what finished runs learnt, the mean of their weights, in float16; or its mean with what is kept of another.

    Runs that start from the same weights lie in one basin, so that their mean answers like their ensemble at the cost
    of one (M. Wortsman et al., "Model soups", ICML 2022).

    Raises:
        RunMissing: one was not trained, or nothing is kept of the other recipe; names the command.
        TypeError: its model learns all of its weights.
    """
    models = [family_of(recipe, runs, seed).load() for seed in seeds]
    names = learnt_names(models[0])
    path = learnt_file(recipe)
    path.parent.mkdir(exist_ok=True)
    states = [model.state_dict() for model in models]
    means = {name: torch.stack([state[name] for state in states]).mean(0) for name in sorted(names)}
    if recipe.kept_toward is not None:
        other, share = recipe.kept_toward
        kept = load_learnt(find(other), runs).state_dict()
        means = {name: torch.lerp(mean, kept[name], share) for name, mean in means.items()}
    learnt = {name: mean.half().numpy() for name, mean in means.items()}
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **learnt)
    return path


def development_figures(recipe: Recipe, runs: Path) -> dict[str, float]:
    """The figures of what is kept of a recipe on its development parts; raises like `load_learnt`."""
    teacher, figures = TrainedTeacher(recipe, runs), dict[str, float]()
    for name, pairs in recipe.data.dev().items():
        task = DEVELOPMENT[name][0]
        measured = measure(task, teacher.outputs(pairs)[task], pairs)
        figures |= {f"{name}_{metric}": value for metric, value in measured.items()}
    return figures


def load_learnt(recipe: Recipe, runs: Path) -> CrossEncoder:
    """The trained model, from the published weights and the file that is kept.

    Raises:
        RunMissing: the published weights were not fetched, or nothing is kept; names the command.
        ValueError: the file is of another model.
    """
    if not learnt_file(recipe).is_file():
        raise RunMissing(f"{learnt_file(recipe)} is not there: run `python -m training keep {recipe.name}` first")
    # The file holds all that the chain of runs learnt: none of these runs is needed.
    model = family_of(replace(recipe, start=None, start_seed=None), runs, seed=0).build(None)
    assert isinstance(model, CrossEncoder)
    add_learnt(recipe, model)
    return model.eval()
