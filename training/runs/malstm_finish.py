"""After a MaLSTM run: out-of-fold scores for the calibration, and the support vector machine for entailment."""

import copy
import logging
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import KFold
from torch import Tensor

from training.architectures.parts.svm import fit_svm
from training.objectives.development import encode_all
from training.objectives.manhattan import ManhattanObjective
from training.objectives.supervised import LabelledPairs
from training.recipes.recipe import Recipe
from training.records import replacing
from training.runs.loop import train

logger = logging.getLogger(__name__)

OUT_OF_FOLD_NAME, ENTAILMENT_NAME = "out-of-fold.npz", "entailment.pt"
FOLDS = 5


def finish(
    objective: ManhattanObjective,
    start: dict[str, Tensor],
    labelled: LabelledPairs,
    recipe: Recipe,
    folder: Path,
    seed: int,
) -> None:
    """Write the files that the objective's config requires to the run's folder; existing files are kept.

    Args:
        objective: trained.
        start: the weights it was trained from.
        labelled: SICK train, for entailment.
        recipe: of the run; the folds are trained with its optimiser and schedule.
        folder: of the run.
        seed: of the run.
    """
    config = objective.config
    if config.calibrate_on == "out-of-fold" and not (path := folder / OUT_OF_FOLD_NAME).is_file():
        g = out_of_fold(objective, start, recipe, folder, seed)
        with replacing(path) as partial, partial.open("wb") as file:
            np.savez(file, g=g, rating=objective.training.rating)
    if config.entailment and not (path := folder / ENTAILMENT_NAME).is_file():
        objective.model.eval()
        with torch.no_grad():
            a, b = (encode_all(objective.model, side).cpu().numpy() for side in (labelled.a, labelled.b))
        head = fit_svm(a, b, labelled.label)
        with replacing(path) as partial:
            torch.save(head.state_dict(), partial)


def out_of_fold(
    objective: ManhattanObjective, start: dict[str, Tensor], recipe: Recipe, folder: Path, seed: int
) -> npt.NDArray[np.float64]:
    """g of every training pair [N] under a model trained, as the run was, on the other four fifths of the pairs.

    A curve fitted on g of the run's own training pairs, to which the model was fitted, is too steep for new pairs.
    """
    pairs = objective.training
    g = np.zeros(len(pairs))
    for fold, (rows, held_out) in enumerate(KFold(FOLDS, shuffle=True, random_state=seed).split(np.arange(len(pairs)))):
        model = copy.deepcopy(objective.model)
        model.load_state_dict(start)
        part = ManhattanObjective(
            *(model, pairs, objective.development, objective.config, objective.batch_size, objective.seed), rows=rows
        )
        temporary = folder / f"fold-{fold}"
        result = train(part, recipe.optimiser, recipe.schedule, temporary, seed=seed)
        logger.info("fold %d of %d: development %.4f", fold + 1, FOLDS, result.best["selection"])
        model.eval()
        with torch.no_grad():
            a, b = (model.encode(side.batch(held_out)) for side in (pairs.a, pairs.b))
            g[held_out] = part.similarity(a, b).cpu().numpy()
        shutil.rmtree(temporary)
    return g
