"""How often a configuration decides rightly, measured on questions that did not choose its threshold."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semblance.faq.configurations import Ranked
from semblance.faq.files import NONE, Questions
from semblance.faq.fitting import Fitted, best_threshold, calibration_error, fit, folds_of
from semblance.logistic import Flags, Floats

FOLDS = 10
REPEATS = 5  # of the folds, drawn anew
ABOUT_AS_CHEAP = 1.5  # times the cheapest one's time


class Share(NamedTuple):
    """A share of the questions, and its range in 95 % of the resamples."""

    value: float
    low: float
    high: float


class Decided(NamedTuple):
    """What a configuration is worth.

    Attributes:
        ranked: its answers.
        first_right: of the questions that have an answer, those whose first entry is the right one.
        decisions_right: of all, those whose right answer is given, or which are rightly refused.
        wrong_given: of all, those to which a wrong answer is given.
        refused_known: of all, those that are refused although they have an answer.
        outcome: of each question.
        behind: how far its decisions are below the best one's.
        behind_error: standard error of that.
        fitted: the confidence, fitted on all questions.
        threshold: of that confidence.
        calibration_error: of confidences of questions that these were not fitted on.
    """

    ranked: Ranked
    first_right: Share
    decisions_right: Share
    wrong_given: Share
    refused_known: Share
    outcome: "Outcome"
    behind: float
    behind_error: float
    fitted: Fitted
    threshold: float
    calibration_error: float


class Outcome(NamedTuple):
    """Of each question the share of repeats with that outcome, [m]; and its confidence, the mean of the repeats."""

    right: Floats
    given: Floats  # its first entry is the answer
    wrong_given: Floats
    refused_known: Floats
    chances: Floats


def compare(found: Sequence[Ranked], questions: Questions, *, resamples: int, seed: int) -> list[Decided]:
    """The configurations, those with the most right decisions first.

    Confidence and threshold are fitted by cross-validation, so that no question is decided by a fit that has seen it;
    the intervals are of `resamples` bootstrap samples of the questions, the same for all (Efron and Tibshirani 1993).
    """
    random = np.random.default_rng(seed)
    unanswerable = np.array(questions.right) == NONE
    size = len(unanswerable)
    drawn = random.multinomial(size, np.full(size, 1 / size), resamples).astype(np.float64)
    outcomes = [_out_of_sample(each, unanswerable, seed) for each in found]
    samples = [drawn @ outcome.right / size for outcome in outcomes]
    top = max(range(len(found)), key=lambda n: float(outcomes[n].right.mean()))
    compared = []
    for each, outcome, sample in zip(found, outcomes, samples, strict=True):
        fitted = fit(each.features, each.right, each.configuration.published)
        compared.append(
            Decided(
                each,
                _share(each.right.astype(np.float64), drawn, ~unanswerable),
                _share(outcome.right, drawn),
                _share(outcome.wrong_given, drawn),
                _share(outcome.refused_known, drawn),
                outcome,
                float(outcomes[top].right.mean() - outcome.right.mean()),
                float(np.std(samples[top] - sample)),
                fitted,
                best_threshold(each.right, unanswerable),
                calibration_error(outcome.chances, each.right),
            )
        )
    return sorted(compared, key=lambda each: -each.decisions_right.value)


def recommended(compared: Sequence[Decided]) -> Decided:
    """The cheapest of those within one standard error of the best (the rule of Breiman et al. 1984, chapter 3.4).

    Of those that cost about as little the one with the most right decisions: times are measured, and on a busy machine
    a small difference says nothing.
    """
    good = [each for each in compared if each.behind <= each.behind_error]
    cheapest = min(each.ranked.seconds for each in good)
    return next(each for each in good if each.ranked.seconds <= ABOUT_AS_CHEAP * cheapest)


def _out_of_sample(ranked: Ranked, unanswerable: Flags, seed: int) -> Outcome:
    size = len(unanswerable)
    towards = ranked.configuration.published
    random = np.random.default_rng(seed)  # the same folds for every configuration with the same answers
    right, given, wrong, refused, chances = (np.zeros(size) for _ in range(5))
    for _ in range(REPEATS):
        folds = folds_of(ranked.right, unanswerable, min(FOLDS, size), random)
        for fold in range(folds.max() + 1):
            rest, held = folds != fold, folds == fold
            fitted = fit(ranked.features[rest], ranked.right[rest], towards)
            threshold = best_threshold(ranked.right[rest], unanswerable[rest])
            found = fitted.probability(ranked.features[held])
            answers = found >= threshold
            chances[held] += found
            right[held] += np.where(answers, ranked.right[held], unanswerable[held])
            given[held] += answers
            wrong[held] += answers & ~ranked.right[held]
            refused[held] += ~answers & ~unanswerable[held]
    return Outcome(*(each / REPEATS for each in (right, given, wrong, refused, chances)))


def _share(each: Floats, drawn: Floats, among: npt.NDArray[np.bool_] | None = None) -> Share:
    """The mean over the questions, or `among` some, with its interval."""
    weights = drawn if among is None else drawn * among
    sums = np.maximum(weights.sum(1), 1.0)
    low, high = np.percentile(weights @ each / sums, [2.5, 97.5])
    value = each.mean() if among is None else each[among].mean()
    return Share(float(value), float(low), float(high))
