"""Files of labelled pairs, and a model's score of each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from semblance.client.clients import AsyncClient
from semblance.errors import BatchError
from semblance.jobs.batch.job import ROWS_AT_ONCE
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, make_task
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND
from semblance.tables.labelled_pairs import read_own

Scored = Literal["similarity", "paraphrase", "relevance", "entailment"]  # tasks that give a pair one number
COLUMNS = ("a", "b", "label")


class BinaryLabelledPairs(NamedTuple):
    """n pairs, and whether each is one that a threshold should let pass."""

    a: list[str]
    b: list[str]
    labels: npt.NDArray[np.bool_]  # [n]
    notes: Sequence[str] = ()  # what a user should know of how the file was read


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
    return BinaryLabelledPairs([pair.a for pair in read.pairs], [pair.b for pair in read.pairs], labels, read.notes)


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
        BatchError: there is no such model, or it lacks the task.
        SemblanceError: raised by the client.
    """
    scored = make_task(BatchOptions(task, DEFAULT_COLUMNS[task], model), await client.models())
    items = list(zip(pairs.a, pairs.b, strict=True))
    size = min(ROWS_AT_ONCE, scored.rows_at_once)
    rows: list[dict[str, Any]] = []
    for start in range(0, len(items), size):
        part = items[start : start + size]
        rows += await scored.ask(client, part)
    column = "entailment" if task == "entailment" else "score"
    scores = np.array([row[column] for row in rows], dtype=np.float64)
    return scored.model.id, scores, sum(bool(row["truncated"]) for row in rows)
