"""The threshold of scores that parts labelled pairs best, how sure that is, and which model parts them best.

Imports `tables`, `client` and `jobs.batch`, and NumPy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, time_ns
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from semblance.client.clients import AsyncClient
from semblance.errors import BatchError
from semblance.jobs.batch.job import ROWS_AT_ONCE
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, changed, make_task
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND
from semblance.tables.labelled_pairs import read_own
from semblance.tables.rows import BadRow
from semblance.types import ModelInfo

Scores = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
Scored = Literal["similarity", "paraphrase", "relevance", "entailment"]  # tasks that give a pair one number
COLUMNS = ("a", "b", "label")
OF_A_PAIR: Sequence[Scored] = ("similarity", "paraphrase", "relevance")  # entailment only where it is asked for
TIMED = 32  # pairs on which a cost is measured


@dataclass(frozen=True, slots=True)
class Quality:
    """What a threshold does: pairs with at least this score pass."""

    threshold: float
    precision: float  # share of the passing pairs that have the label 1; 0 if none passes
    recall: float  # share of the pairs with the label 1 that pass
    f1: float
    passing: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean over resamples, and the range of 95 % of them."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ThresholdInterval:
    """Over resampled pairs: the threshold, and its quality on the pairs that did not choose it."""

    resamples: int
    threshold: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate


def quality(scores: Scores, labels: Labels, threshold: float) -> Quality:
    """Precision, recall and F1 of one threshold: scores and labels [n]."""
    passing = scores >= threshold
    right, passed, wanted = int((labels & passing).sum()), int(passing.sum()), int(labels.sum())
    f1 = 2 * right / (passed + wanted) if passed + wanted else 0.0
    return Quality(threshold, right / passed if passed else 0.0, right / wanted if wanted else 0.0, f1, passed)


def choose(scores: Scores, labels: Labels, precision: float | None = None) -> float:
    """The best threshold: half-way between the lowest score that passes and the next lower one.

    Args:
        scores: [n], 0..1.
        labels: [n], with both values.
        precision: the least wanted; of the thresholds that reach it the one with most recall. None: the highest F1.

    Raises:
        BatchError: no threshold reaches that precision.
    """
    order = np.argsort(scores, kind="stable")
    cuts, first = np.unique(scores[order], return_index=True)  # rising: pairs from `first` on pass
    right = np.cumsum(labels[order][::-1])[::-1][first]
    passed = len(scores) - first
    at, recalls = right / passed, right / labels.sum()
    if precision is None:
        best = int(np.argmax(2 * right / (passed + labels.sum())))
    else:
        reached = np.flatnonzero(at >= precision)
        if not len(reached):
            raise BatchError(f"no threshold has a precision of {precision:g}; the highest is {at.max():.4f}")
        best = int(reached[np.argmax(recalls[reached])])
    lowest = float(cuts[best])
    below = scores[scores < lowest]
    return (lowest + float(below.max())) / 2 if len(below) else lowest


def resampled(
    scores: Scores, labels: Labels, precision: float | None = None, *, resamples: int = 1000, seed: int = 1
) -> ThresholdInterval:
    """Choose on `resamples` bootstrap samples of the pairs, stratified by label; measure each choice on the rest.

    Efron and Tibshirani (1993), chapters 13 and 17: percentile intervals, and the pairs that a sample leaves out.

    Raises:
        BatchError: fewer than two pairs have one of the labels, or no sample reaches that precision.
    """
    if min(labels.sum(), (~labels).sum()) < 2:
        raise BatchError("an interval needs at least two pairs with each label")
    places = np.arange(len(scores))
    strata = [places[labels], places[~labels]]
    random = np.random.default_rng(seed)
    found: list[Quality] = []
    for _ in range(resamples):
        drawn = np.concatenate([random.choice(stratum, len(stratum)) for stratum in strata])
        rest = np.setdiff1d(places, drawn)
        if len(np.unique(labels[rest])) < 2:
            continue  # nothing to measure on
        try:
            threshold = choose(scores[drawn], labels[drawn], precision)
        except BatchError:
            continue  # this sample does not reach the precision
        found.append(quality(scores[rest], labels[rest], threshold))
    if not found:
        raise BatchError("no resample of these pairs gives a threshold: give more pairs")

    def estimate(values: Sequence[float]) -> Estimate:
        low, high = np.percentile(values, [2.5, 97.5])
        return Estimate(float(np.mean(values)), float(low), float(high))

    names = ("threshold", "precision", "recall", "f1")
    return ThresholdInterval(len(found), *(estimate([getattr(each, name) for each in found]) for name in names))


class BinaryLabelledPairs(NamedTuple):
    """n pairs, and whether each is one that a threshold should let pass."""

    a: list[str]
    b: list[str]
    labels: npt.NDArray[np.bool_]  # [n]
    notes: Sequence[str] = ()  # what a user should know of how the file was read
    places: Sequence[str] = ()  # of each pair, for messages; none: they are not of a file


def read_pairs(path: Path, columns: Sequence[str] = COLUMNS, read_as: FileFormat = AS_FOUND) -> BinaryLabelledPairs:
    """The pairs of a .csv, .tsv, .jsonl or .parquet file.

    Args:
        path: the file; empty lines are skipped.
        columns: names of the two texts' columns and of the label's, which holds 0 or 1.
        read_as: encoding and separator of the file.

    Raises:
        BatchError: the file cannot be opened, its suffix is unknown, a row has a fault, or no pair has one of the
            labels.
    """
    read = read_own(path, columns, kind="label", read_as=read_as)
    if read.faults:
        raise BatchError(f"{path}: {read.describe(read.faults)}")
    labels = np.array([pair.label == "1" for pair in read.pairs], dtype=bool)
    for label, count in ((1, int(labels.sum())), (0, int((~labels).sum()))):
        if not count:
            raise BatchError(f"{path}: no pair has the label {label}; a threshold needs pairs of both labels")
    places = [f"{path}: {read.place} {line}" for line in read.lines]
    a, b = [pair.a for pair in read.pairs], [pair.b for pair in read.pairs]
    return BinaryLabelledPairs(a, b, labels, read.notes, places)


async def scores_of(
    client: AsyncClient, pairs: BinaryLabelledPairs, model: str | None, task: Scored
) -> tuple[str, npt.NDArray[np.float64], int]:
    """The model's name, its scores [n], and how many pairs have a text that it cuts.

    Args:
        client: a service's, or the models of a folder.
        pairs: n pairs.
        model: its id or name; None: the default of the task.
        task: whose score; of entailment its probability, a being the premise.

    Raises:
        BatchError: there is no such model, it lacks the task, or a text of a file is longer than the service takes.
        SemblanceError: raised by the client.
    """
    scored = make_task(BatchOptions(task, DEFAULT_COLUMNS[task], model), await client.models())
    items = list(zip(pairs.a, pairs.b, strict=True))
    for place, item in zip(pairs.places, items, strict=False):
        try:
            scored.item(dict(zip(scored.columns, item, strict=True)))
        except BadRow as why:
            raise BatchError(f"{place}: {why.reason}") from None
    size = min(ROWS_AT_ONCE, scored.rows_at_once)
    rows: list[dict[str, Any]] = []
    for start in range(0, len(items), size):
        part = items[start : start + size]
        rows += await scored.ask(client, part)
    column = "entailment" if task == "entailment" else "score"
    scores = np.array([row[column] for row in rows], dtype=np.float64)
    return scored.model.id, scores, sum(bool(row["truncated"]) for row in rows)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model's scores of the pairs, for one of its tasks."""

    model: str
    task: Scored
    scores: Scores  # [n]
    seconds: float  # of a pair, as it was asked here
    truncated: int  # pairs with a text that it cuts


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """How well a candidate parts the pairs.

    Attributes:
        auc: area under the ROC curve: how often a pair with the label 1 has a higher score than one with the label 0.
        low, high: of the AUC, in 95 % of the resamples.
        best: the threshold with the highest F1, and what it does on these pairs.
        candidate: whose.
    """

    auc: float
    low: float
    high: float
    best: Quality
    candidate: Candidate


async def candidates(
    client: AsyncClient,
    pairs: BinaryLabelledPairs,
    models: Sequence[str] | None,
    tasks: Sequence[Scored] = OF_A_PAIR,
    *,
    every: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> tuple[list[Candidate], int]:
    """The scores of models for each of the tasks that they have, and how many models with such a task were not asked.

    Args:
        client: a service's, or the models of a folder.
        pairs: n pairs.
        models: ids or names; None: those that the service lists first.
        tasks: whose scores.
        every: without names, all that are served.
        say: called with a line about each model before it is asked.

    Raises:
        BatchError: none of them has one of the tasks, a model named is not served, or one changed meanwhile.
        SemblanceError: raised by the client.
    """
    served = await client.models()
    asked, others = to_compare(served.models, tasks, models, every=every)
    found = []
    for model in asked:
        say(f"asking {model.id} about {len(pairs.a):,} pairs")
        for task in (task for task in tasks if task in model.tasks):
            name, scores, cut = await scores_of(client, pairs, model.id, task)  # which opens the model
            fresh = _never_asked(pairs)
            began = perf_counter()
            await scores_of(client, fresh, model.id, task)
            found.append(Candidate(name, task, scores, (perf_counter() - began) / len(fresh.a), cut))
    if changed(served, await client.models(), [model.id for model in asked]):
        raise BatchError("a model changed while it was asked: start again")
    return found, others


def to_compare(
    served: Sequence[ModelInfo], tasks: Sequence[str], names: Sequence[str] | None, *, every: bool
) -> tuple[list[ModelInfo], int]:
    """The models to compare, and how many others have one of the tasks.

    Args:
        served: all models.
        tasks: of which a model must have one.
        names: ids of models; None: those that the service lists first.
        every: without names, all with such a task.

    Raises:
        BatchError: a model named is not served or has none of the tasks, or no model has one.
    """
    able = [model for model in served if set(tasks) & set(model.tasks)]
    kinds = " or ".join(tasks)
    if not able:
        raise BatchError(f"no model has {kinds}")
    for name in names or ():
        if not any(name == model.id for model in able):
            raise BatchError(f"model {name!r} is not served or has no {kinds}; {', '.join(m.id for m in able)} have")
    if names:
        asked = [model for model in able if model.id in names]
    else:  # an older service lists none first
        asked = able if every else [model for model in able if model.main is not False]
    return asked, len(able) - len(asked)


def _never_asked(pairs: BinaryLabelledPairs) -> BinaryLabelledPairs:
    """Some of the pairs with a new number in each text, which no cache has."""
    number = time_ns()
    a, b = ([f"{text} {number}" for text in side[:TIMED]] for side in (pairs.a, pairs.b))
    return BinaryLabelledPairs(a, b, pairs.labels[:TIMED])


def compare(
    found: Sequence[Candidate], labels: Labels, *, resamples: int = 1000, seed: int = 1
) -> list[ModelComparison]:
    """The candidates, the highest AUC first; intervals by `resamples` bootstrap samples, stratified by label.

    All are measured on the same samples, so that they are compared on equal pairs (Efron and Tibshirani 1993).
    """
    compared = []
    for candidate in found:
        auc_of = _auc(candidate.scores, labels)
        random = np.random.default_rng(seed)  # the same samples for each candidate
        auc = auc_of(np.ones(len(labels), dtype=np.int64))
        low, high = np.percentile([auc_of(_resample(labels, random)) for _ in range(resamples)], [2.5, 97.5])
        best = quality(candidate.scores, labels, choose(candidate.scores, labels))
        compared.append(ModelComparison(auc, float(low), float(high), best, candidate))
    return sorted(compared, key=lambda each: -each.auc)


def recommended(compared: Sequence[ModelComparison]) -> ModelComparison:
    """The one with the highest AUC, of equal ones the cheapest."""
    return min(compared, key=lambda each: (-each.auc, each.candidate.seconds))


def _resample(labels: Labels, random: np.random.Generator) -> Counts:
    """How often a bootstrap sample has each pair, as many of each label as there are."""
    counts = np.zeros(len(labels), dtype=np.int64)
    for value in (True, False):
        own = np.flatnonzero(labels == value)
        counts[own] = np.bincount(random.integers(len(own), size=len(own)), minlength=len(own))
    return counts


def _auc(scores: Scores, labels: Labels) -> Callable[[Counts], float]:
    """The AUC of pairs that are there so many times, by Mann and Whitney: equal scores count half."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)  # of equal scores

    def auc(counts: Counts) -> float:
        ones, zeros = (np.add.reduceat(np.where(labels == value, counts, 0)[order], starts) for value in (True, False))
        below = np.cumsum(zeros) - zeros / 2
        return float((ones * below).sum() / (ones.sum() * zeros.sum()))

    return auc
