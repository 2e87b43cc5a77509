"""Figures of a model on labelled pairs, by what the labels are."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score

from semblance.tables.labelled_pairs import Kind
from training.data.pairs import Pair
from training.objectives.metrics import graded, ranked

MAIN: Mapping[Kind, str] = {"score": "spearman", "label": "auc", "ranking": "map"}


def figures(kind: Kind, values: npt.NDArray[np.floating], pairs: Sequence[Pair]) -> dict[str, float]:
    """Figures of n pairs; that of `MAIN` chooses the epoch, and decides whether a model is worse than its start.

    Args:
        kind: of the labels.
        values: scores [n], higher is more alike.
        pairs: with their labels or scores.
    """
    if kind == "score":
        found = graded(values, [float(pair.target or 0.0) for pair in pairs])
        return {"pearson": found["pearson"], "spearman": found["spearman"]}
    right = [pair.label == "1" for pair in pairs]
    if kind == "ranking":
        found = ranked(values, right, [pair.group for pair in pairs])
        return {"map": found["map"], "mrr": found["mrr"]}
    return {
        "auc": float(roc_auc_score(right, values)),
        "average_precision": float(average_precision_score(right, values)),
    }
