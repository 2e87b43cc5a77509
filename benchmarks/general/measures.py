"""What is measured of a model on the sets: pure functions of a model's answers."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.general.sets import Contrast, Question
from core.manifest import ScoreTask
from training.data.pairs import Pair
from training.data.readers.labelled_pairs import NOT_ENTAILMENT
from training.objectives.metrics import calibration_error
from training.recipes.sources.figures import PairScorer

Values = npt.NDArray[np.float64]
SURE = 0.9  # a probability that a user would act on
_WORD = re.compile(r"[^\W_]+")


# questions


def raw_scores(model: PairScorer, questions: Sequence[Question], task: ScoreTask) -> list[Values]:
    """The raw scores of each question's answers; candidates are ordered by them."""
    asked = [question.text for question in questions for _ in question.answers]
    raw = model.similarity(asked, [answer for question in questions for answer in question.answers], task).raw_score
    return np.split(raw, np.cumsum([len(question.answers) for question in questions])[:-1])


def order(raw: Values) -> list[int]:
    """The places of the answers, best first, as `POST /rank` gives them."""
    found: list[int] = np.argsort(-raw, kind="stable").tolist()
    return found


def ranking_figures(questions: Sequence[Question], orders: Sequence[Sequence[int]]) -> dict[str, float]:
    """How many questions have the right answer first, in all and in each domain; and the mean reciprocal rank."""
    places = [found.index(question.right) for question, found in zip(questions, orders, strict=True)]
    figures: dict[str, float] = {"first": sum(place == 0 for place in places)}
    for domain in dict.fromkeys(question.domain for question in questions):
        of_domain = [place for question, place in zip(questions, places, strict=True) if question.domain == domain]
        figures[f"first_{domain}"] = sum(place == 0 for place in of_domain)
    figures["mrr"] = float(np.mean([1 / (place + 1) for place in places]))
    return figures


# contrast


def contrast_shares(model: PairScorer, contrasts: Sequence[Contrast], task: ScoreTask) -> dict[str, float]:
    """How often a rewrite scores above the edit, 0..1, mean over the originals: in all, and for each kind.

    Equal scores count half.
    """
    originals = [each.original for each in contrasts]
    edits = model.similarity(originals, [each.edit for each in contrasts], task).raw_score
    flat = [(each.original, rewrite) for each in contrasts for rewrite in each.rewrites]
    scores = iter(model.similarity([a for a, _ in flat], [b for _, b in flat], task).raw_score.tolist())
    shares = []
    for each, edit in zip(contrasts, edits.tolist(), strict=True):
        own = np.array([next(scores) for _ in each.rewrites])
        shares.append(float(np.mean((own > edit) + 0.5 * (own == edit))))
    kinds = np.array([each.kind for each in contrasts])
    of_kinds = {kind: float(np.mean(np.array(shares)[kinds == kind])) for kind in dict.fromkeys(kinds.tolist())}
    return {"all": float(np.mean(shares)), **(of_kinds if len(of_kinds) > 1 else {})}


def order_auc(model: PairScorer, pairs: Sequence[Pair], task: ScoreTask) -> float:
    """How often a pair labelled 1 scores above one labelled 0: the area under the curve, 0..1."""
    raw = model.similarity([pair.a for pair in pairs], [pair.b for pair in pairs], task).raw_score
    return float(roc_auc_score([pair.label == "1" for pair in pairs], raw))


def near_misses(model: PairScorer, pairs: Sequence[Pair], task: ScoreTask) -> dict[str, float]:
    """Of requests, each with a rewording and then a near-miss: the area under the curve of all pairs, 0..1, and how
    many requests have the rewording above their own near-miss."""
    raw = model.similarity([pair.a for pair in pairs], [pair.b for pair in pairs], task).raw_score
    return {
        "auc": float(roc_auc_score([pair.label == "1" for pair in pairs], raw)),
        "above": int((raw[::2] > raw[1::2]).sum()),
    }


# entailment


def followed(odds: Sequence[Mapping[str, float]], pairs: Sequence[Pair]) -> dict[str, float]:
    """Of statements that follow and others: how many of each are said to follow, and the area under the curve, 0..1."""
    follow = np.array([pair.label == "entailment" for pair in pairs])
    said = np.array([max(each, key=each.__getitem__) == "entailment" for each in odds])
    return {
        "seen": int((said & follow).sum()),
        "wrongly": int((said & ~follow).sum()),
        "auc": float(roc_auc_score(follow, [each["entailment"] for each in odds])),
    }


def entailment_figures(odds: Sequence[Mapping[str, float]], pairs: Sequence[Pair]) -> dict[str, float]:
    """Accuracy, expected calibration error, and what is right of the answers that are surer than `SURE`.

    Where the pairs have two classes, neutral and contradiction are one.
    """
    gold = [pair.label or "" for pair in pairs]
    if NOT_ENTAILMENT in gold:
        odds = [{"entailment": each["entailment"], NOT_ENTAILMENT: 1 - each["entailment"]} for each in odds]
    predicted = [max(each, key=each.__getitem__) for each in odds]
    sure = np.array([max(each.values()) for each in odds])
    right = np.array([said == label for said, label in zip(predicted, gold, strict=True)])
    acted = sure >= SURE
    return {
        "accuracy": float(right.mean()),
        "ece": calibration_error(sure, right.tolist()),
        "sure": float(acted.mean()),
        "sure_right": float(right[acted].mean()) if acted.any() else float("nan"),
    }


# the baseline


@cache
def words(text: str) -> frozenset[str]:
    """The words of a text, in lower case, without those that carry little meaning."""
    found = frozenset(_WORD.findall(text.lower()))
    return found - ENGLISH_STOP_WORDS or found


def overlap(text: str, other: str) -> float:
    """The share of the other's words that the text has, 0..1."""
    return len(words(text) & words(other)) / max(1, len(words(other)))


def overlap_order(question: Question) -> list[int]:
    """The answers by the share of the question's words that they have; of equals the first."""
    return order(np.array([overlap(answer, question.text) for answer in question.answers]))


def overlap_entailment(fit: Sequence[Pair], pairs: Sequence[Pair]) -> list[dict[str, float]]:
    """Probabilities of labels by the overlap alone: logistic regression, fitted on pairs with three labels."""

    def features(of: Sequence[Pair]) -> Values:
        return np.array([[overlap(pair.a, pair.b)] for pair in of])

    model = LogisticRegression().fit(features(fit), [pair.label for pair in fit])
    return [
        dict(zip(model.classes_.tolist(), row, strict=True)) for row in model.predict_proba(features(pairs)).tolist()
    ]
