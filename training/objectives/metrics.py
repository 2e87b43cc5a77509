"""Evaluation metrics with the names and conventions of the SemEval tasks; r and rho are in -1..1."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytrec_eval
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score

Values = npt.NDArray[np.floating] | Sequence[float]
BINS = 10  # of the calibration error


def graded(predicted: Values, gold: Values) -> dict[str, float]:
    """Pearson r, Spearman rho and mean squared error of graded predictions [n] against gold [n].

    A constant prediction has no correlation; 0 is reported.
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


def calibration_error(probabilities: Values, right: Sequence[bool]) -> float:
    """Expected calibration error, 0..1: |mean probability - accuracy| of ten equal bins, weighted by their sizes.

    Guo et al. (2017), eq. 3, over the probabilities [n] of the predicted labels, and whether each was right.
    """
    sure, hit = np.asarray(probabilities, dtype=np.float64), np.asarray(right, dtype=np.float64)
    which = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(which, sure - hit, minlength=BINS)
    return float(np.abs(gaps).sum() / len(sure))


def ranked(scores: Values, relevant: Sequence[bool], questions: Sequence[str]) -> dict[str, float]:
    """MAP and MRR as trec_eval gives them, over the questions that have a relevant candidate, and their number.

    Args:
        scores: of n candidates, higher is better.
        relevant: whether each answers its question.
        questions: which question each belongs to.

    Raises:
        ValueError: no question has a relevant candidate.
    """
    run: dict[str, dict[str, float]] = {}
    gold: dict[str, dict[str, int]] = {}
    for i, (score, right, question) in enumerate(zip(scores, relevant, questions, strict=True)):
        run.setdefault(question, {})[str(i)] = float(score)
        gold.setdefault(question, {})[str(i)] = int(right)
    asked = {question: candidates for question, candidates in gold.items() if any(candidates.values())}
    if not asked:
        raise ValueError("no question has a relevant candidate")
    measured = pytrec_eval.RelevanceEvaluator(asked, {"map", "recip_rank"}).evaluate(run).values()
    return {
        "map": float(np.mean([each["map"] for each in measured])),
        "mrr": float(np.mean([each["recip_rank"] for each in measured])),
        "questions": float(len(asked)),
    }


def binary(predicted: Sequence[bool], gold: Sequence[bool]) -> dict[str, float]:
    """Accuracy and F1 of the positive class, 0..1."""
    return {"accuracy": float(accuracy_score(gold, predicted)), "f1": float(f1_score(gold, predicted))}
