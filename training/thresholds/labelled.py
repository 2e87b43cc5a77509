"""Files of labelled pairs, and a model's score of each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from contract.manifest import Manifest
from training.corpora.own_pairs import PairsError, read_own
from training.publishing.runtime import PublishedModel

Scored = Literal["similarity", "paraphrase", "relevance", "entailment"]  # tasks that give a pair one number
TASKS: tuple[Scored, ...] = get_args(Scored)
COLUMNS = ("a", "b", "label")


class ThresholdError(ValueError):
    """The file, the model or the wish does not fit; a message for the user."""


class LabelledPairs(NamedTuple):
    """n pairs, and whether each is one that a threshold should let pass."""

    a: list[str]
    b: list[str]
    labels: npt.NDArray[np.bool_]  # [n]


def read_pairs(path: Path, columns: Sequence[str] = COLUMNS) -> LabelledPairs:
    """The pairs of a .csv, .tsv, .jsonl or .parquet file.

    Args:
        path: the file; empty lines are skipped.
        columns: names of the two texts' columns and of the label's, which holds 0 or 1.

    Raises:
        BatchError: the file cannot be opened, or its suffix is unknown.
        ThresholdError: faults, each with its line; or no pair with one of the labels.
    """
    try:
        read = read_own(path, columns, kind="label")
    except PairsError as error:
        raise ThresholdError(str(error)) from None
    if read.faults:
        raise ThresholdError(f"{path}: {read.said(read.faults)}")
    labels = np.array([pair.label == "1" for pair in read.pairs], dtype=bool)
    for label, count in ((1, int(labels.sum())), (0, int((~labels).sum()))):
        if not count:
            raise ThresholdError(f"{path}: no pair has the label {label}; a threshold needs pairs of both labels")
    return LabelledPairs([pair.a for pair in read.pairs], [pair.b for pair in read.pairs], labels)


def task_of(manifest: Manifest, task: Scored) -> Scored:
    """The task, which the model must have; raises ThresholdError, which names those that it has."""
    if task not in manifest.tasks:
        able = ", ".join(each for each in TASKS if each in manifest.tasks) or "none that gives a pair one score"
        raise ThresholdError(f"model {manifest.id} has no {task}; its tasks: {able}")
    return task


def score_here(folder: Path, pairs: LabelledPairs, task: Scored) -> tuple[npt.NDArray[np.float64], int]:
    """The scores [n] of a published model, and how many pairs have a text that it cuts; no service is needed.

    Raises:
        ManifestError, ArtifactError: it is no model folder, or incomplete.
        ThresholdError: the model lacks the task.
    """
    model = PublishedModel(folder)
    model.manifest.verify(folder)
    task_of(model.manifest, task)
    most = model.manifest.limits.max_tokens
    cut = sum(
        model.tokenizer.encode(a, most).truncated or model.tokenizer.encode(b, most).truncated
        for a, b in zip(pairs.a, pairs.b, strict=True)
    )
    if task == "entailment":
        found = [each["entailment"] for each in model.entailment(pairs.a, pairs.b)]
        return np.array(found, dtype=np.float64), cut
    return np.asarray(model.similarity(pairs.a, pairs.b, task).score, dtype=np.float64), cut


def score_there(
    url: str, model: str, pairs: LabelledPairs, task: Scored, api_key: str | None = None
) -> tuple[npt.NDArray[np.float64], int]:
    """The same of a running service, through the client of `semblance`; raises SemblanceError."""
    from semblance import Client

    both = list(zip(pairs.a, pairs.b, strict=True))
    with Client(url, api_key=api_key) as client:
        if task == "entailment":
            labelled = client.entailment(both, model=model).results
            found = [each.probabilities.entailment for each in labelled]
            return np.array(found, dtype=np.float64), sum(any(each.truncated) for each in labelled)
        scored = client.similarity(both, model=model, task=task).results
        return np.array([each.score for each in scored], dtype=np.float64), sum(any(e.truncated) for e in scored)
