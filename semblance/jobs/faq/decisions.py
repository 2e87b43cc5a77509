"""The confidence that decides between an answer and none, fitted on questions, and what its decisions are worth."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.ranking import ONE_STAGE, TWO_STAGES, ConfidenceFit, Feature
from semblance.jobs.faq.configurations import Ranked
from semblance.jobs.faq.files import NONE, Questions
from semblance.jobs.faq.logistic import Flags, Floats, most_likely_weights, probabilities_of

PENALTY = 1.0  # of the squared weights of features in standard deviations: scikit-learn's default, C = 1
TOWARDS_PENALTY = 20.0  # of squared distances from a known line: best on 20 and 40 questions of development FAQs
KNOWN_QUESTIONS = 60  # that a known threshold counts for
SURE = 3.0  # standard errors by which another ranking must be better than the default: there are some fifty
FOLDS = 10
REPEATS = 5  # of the folds, drawn anew
_PARTS, _FEWEST_IN_A_PART = 10, 10  # of rows, for the calibration error


class Line(NamedTuple):
    """The line whose logistic function is the probability."""

    intercept: float
    weights: Floats  # [k], of the features as they are

    def probability(self, features: Floats) -> Floats:
        """[n, k] -> [n], in 0..1."""
        return probabilities_of(features @ self.weights + self.intercept)

    def named(self, names: Sequence[Feature]) -> dict[Feature, float]:
        """The weights by the names of their features."""
        return dict(zip(names, self.weights.tolist(), strict=True))


def line_of(known: ConfidenceFit) -> Line:
    """The line of a published fit."""
    return Line(known.intercept, np.array([known.weights[name] for name in known.features]))


def as_confidence_fit(line: Line, first: Any, second: Any, rerank_top: int, **more: Any) -> ConfidenceFit:
    """The fit of a ranking by one model, or by two, as manifests and requests have it.

    Args:
        line: of the features of a ranking in one stage or in two.
        first: its model, with id and fingerprint.
        second: that of the second stage; None: there is none.
        rerank_top: how many it orders.
        more: other fields.
    """
    stage = {} if second is None else {"rerank_model": second.id, "rerank_fingerprint": second.fingerprint}
    stage |= {} if second is None else {"rerank_top": rerank_top}
    weights = line.named(ONE_STAGE if second is None else TWO_STAGES)
    return ConfidenceFit(
        model=first.id,
        fingerprint=first.fingerprint,
        intercept=round(line.intercept, 6),
        weights={name: round(weight, 6) for name, weight in weights.items()},
        **stage,
        **more,
    )


def fit(features: Floats, right: Flags, known: ConfidenceFit | None = None) -> Line:
    """Logistic regression with an L2 penalty on the distance from a known fit, or from 0.

    The features are standardised, so that the penalty does not depend on their units. Without `known` this is
    scikit-learn's `LogisticRegression` after `StandardScaler`, and the intercept has no penalty.

    Args:
        features: [n, k].
        right: [n].
        known: fitted on many other rows, to which few rows are drawn; None: to weights of 0.
    """
    rows, count = features.shape
    centre, spread = features.mean(0), features.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    design = np.hstack([np.ones((rows, 1)), (features - centre) / spread])
    if known is None:
        share = (right.sum() + 0.5) / (rows + 1)
        goal = np.array([np.log(share / (1 - share)), *[0.0] * count])
        pull = np.array([0.0, *[PENALTY] * count])
    else:
        line = line_of(known)
        goal = np.array([line.intercept + line.weights @ centre, *(line.weights * spread)])
        pull = np.full(count + 1, TOWARDS_PENALTY)
    one_kind = known is None and (right.all() or not right.any())  # which leaves the intercept without a bound
    found = goal if one_kind else most_likely_weights(design, right, goal, pull)
    weights = found[1:] / spread
    return Line(float(found[0] - weights @ centre), weights)


def best_threshold(right: Flags, none: Flags, known: float | None = None) -> float:
    """The probability from which on answering is right more often than refusing is.

    Of questions whose first answer is not right a share c has no answer, so refusing is right with probability
    (1 - p) c, where answering is right with p: it pays from p = c / (1 + c) on. Estimated so from all questions, it
    moves less from sample to sample than the threshold with the most right decisions of these very questions.

    Args:
        right: [n], whether the first answer is.
        none: [n], whether there is no right answer.
        known: the threshold of a published fit, below 1, which counts as much as `KNOWN_QUESTIONS` whose first is not
            right.
    """
    wrong, without = float((~right).sum()), float(none.sum())
    if known is not None:
        wrong += KNOWN_QUESTIONS
        without += KNOWN_QUESTIONS * known / (1 - known)
    share = without / wrong if wrong else 0.0
    return share / (1 + share)


def folds_of(right: Flags, none: Flags, folds: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The fold of each of n rows, drawn so that each has its share of the kinds: right, wrong, without an answer."""
    kinds = np.where(none, 2, np.where(right, 1, 0))
    shuffled = random.permutation(len(kinds))
    order = shuffled[np.argsort(kinds[shuffled], kind="stable")]
    found = np.empty(len(kinds), dtype=np.int64)
    found[order] = np.arange(len(kinds)) % folds
    return found


def calibration_error(chances: Floats, right: Flags) -> float:
    """Mean distance between probability and share of right ones, over parts of the rows by rising probability.

    Naeini, Cooper and Hauskrecht (2015), with parts of equal size: ten, or of ten rows where there are fewer.
    """
    order = np.argsort(chances, kind="stable")
    parts = np.array_split(order, max(1, min(_PARTS, len(order) // _FEWEST_IN_A_PART)))
    return float(sum(abs(chances[part].mean() - right[part].mean()) * len(part) for part in parts) / len(chances))


class Share(NamedTuple):
    """A share of the questions, and its range in 95 % of the resamples."""

    value: float
    low: float
    high: float


class Outcome(NamedTuple):
    """Of each of m questions the share of repeats with that outcome, [m]; and its confidence, the mean of them."""

    right: Floats  # its right answer is given, or it is rightly refused
    given: Floats  # its first entry is the answer
    wrong_given: Floats
    refused_known: Floats  # although it has an answer
    chances: Floats


class Decided(NamedTuple):
    """What a configuration with a confidence is worth.

    Attributes:
        ranked: its answers.
        own: whether the confidence was fitted on these questions; else it is the published one.
        line: the confidence.
        threshold: of it.
        outcome: of each question, decided by a confidence that has not seen it.
        first_right: of the questions that have an answer, the share whose first entry is the right one.
        decisions_right: of all, with its range.
        calibration_error: of confidences of questions that these were not fitted on.
    """

    ranked: Ranked
    own: bool
    line: Line
    threshold: float
    outcome: Outcome
    first_right: float
    decisions_right: Share
    calibration_error: float


def compare(found: Sequence[Ranked], questions: Questions, *, resamples: int, seed: int) -> list[Decided]:
    """The configurations, each with its published confidence and with one of these questions.

    Those with the most right decisions come first, of equal ones the cheaper. What is fitted is measured by
    cross-validation, so that no question is decided by a fit that has seen it; the intervals are of `resamples`
    bootstrap samples of the questions, the same for all (Efron and Tibshirani 1993).
    """
    random = np.random.default_rng(seed)
    none = np.array(questions.right) == NONE
    size = len(none)
    drawn = random.multinomial(size, np.full(size, 1 / size), resamples) / size

    def measured(ranked: Ranked, own: bool, line: Line, threshold: float, outcome: Outcome) -> Decided:
        low, high = np.percentile(drawn @ outcome.right, [2.5, 97.5])
        share = Share(float(outcome.right.mean()), float(low), float(high))
        first_right = float(ranked.right[~none].mean())
        error = calibration_error(outcome.chances, ranked.right)
        return Decided(ranked, own, line, threshold, outcome, first_right, share, error)

    compared = []
    for ranked in found:
        known = ranked.configuration.published
        if known is not None:
            line = line_of(known)
            chances = line.probability(ranked.features)
            outcome = _outcome(chances, chances >= known.threshold, ranked.right, none)
            compared.append(measured(ranked, False, line, known.threshold, outcome))
        line, threshold = _fitted(ranked.features, ranked.right, none, known)
        compared.append(measured(ranked, True, line, threshold, _out_of_sample(ranked, none, known, seed)))
    return sorted(compared, key=lambda each: (-each.decisions_right.value, each.ranked.seconds))


def default_of(compared: Sequence[Decided], model: str | None) -> Decided | None:
    """What the service does unless it is asked for something else: its default model alone, with its own fit."""
    for each in compared:
        first, match, second = each.ranked.configuration
        if not each.own and (first.id, match, second) == (model, "both", None):
            return each
    return None


def recommended(compared: Sequence[Decided], default: Decided | None) -> Decided:
    """The best that is better than the default; the default, where nothing is; without a default the best of all.

    The same ranking with a confidence of one's own is better where more of its decisions are right. Another ranking is
    one of many, of which the best is partly the luckiest: it must be better by `SURE` standard errors of the difference
    on the same questions.
    """
    if default is None:
        return compared[0]
    for each in compared:
        gain = each.outcome.right - default.outcome.right
        another = each.ranked.configuration != default.ranked.configuration
        error = float(gain.std()) / np.sqrt(len(gain)) if another else 0.0
        if gain.mean() > SURE * error:
            return each
    return default


def _fitted(features: Floats, right: Flags, none: Flags, known: ConfidenceFit | None) -> tuple[Line, float]:
    return fit(features, right, known), best_threshold(right, none, None if known is None else known.threshold)


def _outcome(chances: Floats, given: Flags, right: Flags, none: Flags) -> Outcome:
    flags = np.array([np.where(given, right, none), given, given & ~right, ~given & ~none], dtype=np.float64)
    return Outcome(flags[0], flags[1], flags[2], flags[3], chances)


def _out_of_sample(ranked: Ranked, none: Flags, known: ConfidenceFit | None, seed: int) -> Outcome:
    size = len(none)
    random = np.random.default_rng(seed)  # the same folds for every configuration with the same answers
    sums = np.zeros((len(Outcome._fields), size))
    for _ in range(REPEATS):
        folds = folds_of(ranked.right, none, min(FOLDS, size), random)
        for fold in range(folds.max() + 1):
            rest, held = folds != fold, folds == fold
            line, threshold = _fitted(ranked.features[rest], ranked.right[rest], none[rest], known)
            chances = line.probability(ranked.features[held])
            sums[:, held] += _outcome(chances, chances >= threshold, ranked.right[held], none[held])
    right, given, wrong, refused, chances = sums / REPEATS
    return Outcome(right, given, wrong, refused, chances)
