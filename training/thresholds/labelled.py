"""Files of labelled pairs, and a model's score of each."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from contract.manifest import Manifest
from semblance.batch.formats import open_source
from semblance.batch.rows import Row, Unreadable
from training.publishing.runtime import PublishedModel

Scored = Literal["similarity", "paraphrase", "relevance", "entailment"]  # tasks that give a pair one number
TASKS: tuple[Scored, ...] = get_args(Scored)
COLUMNS = ("a", "b", "label")
LABELS: dict[object, bool] = {0: False, 1: True, "0": False, "1": True}  # JSON's true and false equal 1 and 0
_CHUNK = 1000  # rows read at a time
_FAULTS = 5  # shown of a file


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
        ThresholdError: faults, each with its row; or no pair with one of the labels.
    """
    if len(columns) != len(COLUMNS):
        raise ThresholdError(f"expected three columns (two texts and the label), found {len(columns)}")
    source = open_source(path, list(columns))
    if source.columns is not None and (absent := [name for name in columns if name not in source.columns]):
        raise ThresholdError(f"{path}: no column {absent[0]!r}; there are {', '.join(map(repr, source.columns))}")
    found: list[tuple[str, str, bool]] = []
    faults: list[str] = []
    for number, row in _rows(path, source.chunks(0, _CHUNK)):
        read = _read(row, columns)
        if isinstance(read, str):
            faults.append(f"row {number}: {read}")
        else:
            found.append(read)
    if faults:
        more = f"; and {len(faults) - _FAULTS:,} more rows" if len(faults) > _FAULTS else ""
        raise ThresholdError(f"{path}: {'; '.join(faults[:_FAULTS])}{more}")
    labels = np.array([label for _, _, label in found], dtype=bool)
    for label, count in ((1, int(labels.sum())), (0, int((~labels).sum()))):
        if not count:
            raise ThresholdError(f"{path}: no pair has the label {label}; a threshold needs pairs of both labels")
    return LabelledPairs([a for a, _, _ in found], [b for _, b, _ in found], labels)


def _rows(path: Path, chunks: Iterator[Any]) -> Iterator[tuple[int, Row | Unreadable]]:
    """Each row with its number, from 1, as `semblance batch` counts."""
    for chunk in chunks:
        for place, row in enumerate(chunk.rows, chunk.before + 1):
            if row is not None:
                yield place, row


def _read(row: Row | Unreadable, columns: Sequence[str]) -> tuple[str, str, bool] | str:
    """The pair of a row, or what is wrong with it."""
    if isinstance(row, Unreadable):
        return row.reason
    for name in columns:
        if row.get(name) is None:
            return f"{name}: there is none"
    *texts, label = (row[name] for name in columns)
    for name, text in zip(columns, texts, strict=False):
        if not isinstance(text, str):
            return f"{name}: expected text, found {type(text).__name__}"
        if not text.strip():
            return f"{name}: the text has no visible character"
    wanted = label.strip() if isinstance(label, str) else label
    if not isinstance(wanted, str | int | float) or wanted not in LABELS:
        return f"{columns[-1]}: expected 0 or 1, found {label!r}"
    return texts[0], texts[1], LABELS[wanted]


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
