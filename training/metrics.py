"""Measures of agreement; names and conventions of the SemEval tasks. r and rho are in -1..1 here."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score

Values = npt.NDArray[np.floating] | Sequence[float]


def graded(predicted: Values, gold: Values) -> dict[str, float]:
    """Pearson r, Spearman rho and mean squared error of graded predictions [n] against gold [n].

    A constant prediction has no correlation; it is reported as 0, the worst a model can honestly get.
    """
    x, y = np.asarray(predicted, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    mse = float(np.mean((x - y) ** 2))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"pearson": 0.0, "spearman": 0.0, "mse": mse}
    return {"pearson": float(pearsonr(x, y).statistic), "spearman": float(spearmanr(x, y).statistic), "mse": mse}


def labelled(predicted: Sequence[str], gold: Sequence[str]) -> dict[str, float]:
    """Accuracy and macro-averaged F1 of predicted labels, 0..1."""
    return {
        "accuracy": float(accuracy_score(gold, predicted)),
        "macro_f1": float(f1_score(gold, predicted, average="macro")),
    }
