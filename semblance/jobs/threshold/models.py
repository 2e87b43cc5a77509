"""Which model parts labelled pairs best, how sure that is, and what each costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, time_ns

import numpy as np
import numpy.typing as npt

from semblance.client.clients import AsyncClient
from semblance.errors import BatchError
from semblance.jobs.threshold.choice import Labels, Quality, Scores, choose, quality
from semblance.jobs.threshold.labelled import BinaryLabelledPairs, Scored, scores_of
from semblance.types import ModelInfo

OF_A_PAIR: Sequence[Scored] = ("similarity", "paraphrase", "relevance")  # entailment only where it is asked for
TIMED = 32  # pairs on which a cost is measured


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
        BatchError: none of them has one of the tasks, or a model named is not served.
        SemblanceError: raised by the client.
    """
    asked, others = to_compare((await client.models()).models, tasks, models, every=every)
    found = []
    for model in asked:
        say(f"asking {model.id} about {len(pairs.a):,} pairs")
        for task in (task for task in tasks if task in model.tasks):
            name, scores, cut = await scores_of(client, pairs, model.id, task)  # which opens the model
            fresh = _never_asked(pairs)
            began = perf_counter()
            await scores_of(client, fresh, model.id, task)
            found.append(Candidate(name, task, scores, (perf_counter() - began) / len(fresh.a), cut))
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
    random = np.random.default_rng(seed)
    ones, zeros = (int((labels == value).sum()) for value in (True, False))
    # How often a sample has each pair.
    drawn = tuple(random.multinomial(n, np.full(n, 1 / n), resamples).astype(np.float64) for n in (ones, zeros))
    whole = (np.ones((1, ones)), np.ones((1, zeros)))
    aucs = [(float(_aucs(each.scores, labels, whole)[0]), _aucs(each.scores, labels, drawn)) for each in found]
    compared = []
    for candidate, (auc, samples) in zip(found, aucs, strict=True):
        low, high = np.percentile(samples, [2.5, 97.5])
        best = quality(candidate.scores, labels, choose(candidate.scores, labels))
        compared.append(ModelComparison(auc, float(low), float(high), best, candidate))
    return sorted(compared, key=lambda each: -each.auc)


def recommended(compared: Sequence[ModelComparison]) -> ModelComparison:
    """The one with the highest AUC, of equal ones the cheapest."""
    return min(compared, key=lambda each: (-each.auc, each.candidate.seconds))


def _aucs(scores: Scores, labels: Labels, drawn: tuple[npt.NDArray[np.float64], ...]) -> npt.NDArray[np.float64]:
    """The AUC of each sample [R], by Mann and Whitney: equal scores count half."""
    ones, zeros = drawn
    above = scores[labels][:, None] - scores[~labels]
    wins = (above > 0) + 0.5 * (above == 0)
    found: npt.NDArray[np.float64] = ((ones @ wins) * zeros).sum(1) / (ones.sum(1) * zeros.sum(1))
    return found
