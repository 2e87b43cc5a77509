"""What follows a MaLSTM run: scores to calibrate on, and the support vector machine for entailment."""

import copy
import logging
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import KFold
from torch import Tensor

from training.loop import Schedule, train
from training.objectives.development import encode_all
from training.objectives.manhattan import ManhattanObjective, manhattan_similarity
from training.objectives.supervised import LabelledPairs
from training.optimisers import OptimiserConfig
from training.svm import fit_svm

logger = logging.getLogger(__name__)

OUT_OF_FOLD_NAME, ENTAILMENT_NAME = "out-of-fold.npz", "entailment.pt"
FOLDS = 5


def finish(
    objective: ManhattanObjective,
    start: dict[str, Tensor],
    labelled: LabelledPairs,
    optimiser: OptimiserConfig,
    schedule: Schedule,
    folder: Path,
    seed: int,
) -> None:
    """Whatever the objective's config asks for, written into the run's folder; what is there already is kept.

    Args:
        objective: trained.
        start: the weights it was trained from.
        labelled: SICK train, for entailment.
        optimiser: how it was trained, and so are the folds.
        schedule: the same.
        folder: of the run.
        seed: the same.
    """
    config = objective.config
    if config.calibrate_on == "out-of-fold" and not (path := folder / OUT_OF_FOLD_NAME).is_file():
        g = out_of_fold(objective, start, optimiser, schedule, folder, seed)
        with path.with_suffix(".partial").open("wb") as file:
            np.savez(file, g=g, rating=objective.training.rating)
        path.with_suffix(".partial").replace(path)
    if config.entailment and not (path := folder / ENTAILMENT_NAME).is_file():
        objective.model.eval()
        with torch.no_grad():
            a, b = (encode_all(objective.model, side).cpu().numpy() for side in (labelled.a, labelled.b))
        head = fit_svm(a, b, labelled.label)
        torch.save(head.state_dict(), path.with_suffix(".partial"))
        path.with_suffix(".partial").replace(path)


def out_of_fold(
    objective: ManhattanObjective,
    start: dict[str, Tensor],
    optimiser: OptimiserConfig,
    schedule: Schedule,
    folder: Path,
    seed: int,
) -> npt.NDArray[np.float64]:
    """g of every training pair [N] under a model trained, as the run was, on the other four fifths of the pairs.

    A curve fitted on the run's own training pairs is fitted on g that know their labels: too steep for new pairs.
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
        result = train(part, optimiser, schedule, temporary, seed=seed)
        logger.info("fold %d of %d: development %.4f", fold + 1, FOLDS, result.best["selection"])
        model.eval()
        with torch.no_grad():
            a, b = (model.encode(side.batch(held_out)) for side in (pairs.a, pairs.b))
            g[held_out] = manhattan_similarity(a, b).cpu().numpy()
        shutil.rmtree(temporary)
    return g
