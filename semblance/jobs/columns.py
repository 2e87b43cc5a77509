"""A model as a function of columns of texts, for engines that run Python: Ray, Spark, DuckDB, a process pool.

    from semblance import scorer

    score = scorer("avg-paraphrase")
    print(score(["A man plays guitar."], ["A man plays flute."])["score"])

A scorer is a few names: it can be pickled, and opens its model on its first call in a process, once for all scorers of
that folder there. The copy in another process refuses a model with another fingerprint.
"""

import atexit
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from semblance.client.clients import AsyncClient
from semblance.client.local import LoopThread, local_settings
from semblance.errors import BatchError, CannotStart, InvalidRequest
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, Name, ask_rows, make_task
from semblance.tables.rows import BadRow, Kind, Row

Column = npt.NDArray[Any]
_OPENING = Lock()


@dataclass(frozen=True, slots=True)
class ColumnScorer:
    """A function of columns of texts, which `scorer` makes.

    Attributes:
        options: as of `semblance batch`.
        models_dir: folders of models, with the separator of paths between them.
        fingerprints: of the model, and of that of a ranking's second stage.
        kinds: the columns of an answer, in order, and what they hold.
        nulls: whether a row without an answer is null; otherwise it is an error.
    """

    options: BatchOptions
    models_dir: str
    fingerprints: tuple[str, ...]
    kinds: Mapping[str, Kind]
    nulls: bool

    @property
    def task(self) -> Name:
        """As in `semblance batch`."""
        return self.options.task

    def __call__(self, *columns: Sequence[Any]) -> dict[str, Column]:
        """Answer n rows of columns of texts.

        Args:
            columns: as many as the task reads (`similarity`: a and b), each a list or an array of n texts; for `rank`
                the second has lists of texts.

        Returns:
            A column for each of `kinds`: [n], and for embeddings [n, dim]. With `nulls` a row in which a text is
            missing, empty or too long has NaN, None and False.

        Raises:
            ValueError: another number of columns, or columns of different lengths.
            InvalidRequest: a text is missing, empty or too long, unless `nulls`; `field` names row and column.
            CannotStart: the model is another one here.
            RequestFailed: the model cannot be opened here, or a graph failed.
        """
        names = self.options.columns
        columns = tuple(map(_rows_of, columns))
        if len(columns) != len(names) or len({len(column) for column in columns}) != 1:
            found = ", ".join(str(len(column)) for column in columns)
            raise ValueError(f"{self.task} reads {len(names)} columns of one length ({', '.join(names)}), got {found}")
        with _OPENING:
            here = _opened(self.models_dir, os.getpid())
        task = make_task(self.options, here.models)
        if task.fingerprints != self.fingerprints:
            raise CannotStart(
                f"{self.models_dir}: {task.model.id} has the fingerprints {', '.join(task.fingerprints)} here, and "
                f"{', '.join(self.fingerprints)} where it was chosen: all workers must read the same models"
            )
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        answers, bad = here.loop.run(ask_rows(here.client, task, enumerate(map(_plain, rows))))
        if bad and not self.nulls:
            raise _refusal(min(bad.items()))
        width = task.model.dim or 0
        return {
            name: _column(kind, [answers[i][name] if i in answers else None for i in range(len(rows))], width)
            for name, kind in self.kinds.items()
        }


def scorer(
    model: str | None = None,
    task: Name = "similarity",
    *,
    models_dir: str | Path | None = None,
    top_k: int | None = None,
    rerank_model: str | None = None,
    rerank_top: int | None = None,
    nulls: bool = False,
) -> ColumnScorer:
    """A function of columns of texts; see the module. Reads manifests, and opens no model.

    Args:
        model: id of a model with the task; the service's default without it.
        task: similarity, paraphrase, relevance, entailment, rank or embed.
        models_dir: folder of models, as all workers see it; SEMBLANCE_MODELS_DIR, or the usual one, by default.
        top_k: of a ranking: how many of the best; None: all.
        rerank_model: of a ranking: a second model, which orders the best again.
        rerank_top: how many.
        nulls: give null for a row with a missing, empty or too long text, instead of an error.

    Raises:
        BatchError: there is no such task or model, or it does not have the task.
        CannotStart: the models folder cannot be read.
        MissingExtra: the extra `service` is not installed.
    """
    if task not in DEFAULT_COLUMNS:
        raise BatchError(f"task: expected one of {', '.join(DEFAULT_COLUMNS)}, found {task!r}")
    options = BatchOptions(
        task, DEFAULT_COLUMNS[task], model, top_k=top_k, rerank_model=rerank_model, rerank_top=rerank_top
    )
    folders = os.pathsep.join(str(folder.absolute()) for folder in local_settings(models_dir).models_dir)
    with _OPENING:
        made = make_task(options, _opened(folders, os.getpid()).models)
    return ColumnScorer(options, folders, made.fingerprints, dict(made.adds), nulls)


class _Opened:
    """The service in this process, for the scorers of one folder; each of its sessions has one thread."""

    def __init__(self, folders: str, _: int) -> None:
        """Open the folders; a forked process, whose threads are gone, has another number."""
        self.loop = LoopThread()
        self.client = AsyncClient.local(folders, whole_files=True, worker_threads=1)
        atexit.register(self.loop.end, self.client.aclose)
        self.models = self.loop.run(self.client.models())


_opened = cache(_Opened)  # for as long as the process lasts


def _rows_of(column: Any) -> Any:
    """The rows of a column; those of Arrow as Python's.

    Raises:
        ValueError: it is one text.
    """
    if isinstance(column, str | bytes):
        raise ValueError("a column is a list or an array of texts, got one text")
    return column.to_pylist() if hasattr(column, "to_pylist") else column


def _plain(row: Row) -> Row:
    """The row as JSON has it: lists for arrays, None for what pandas has in the place of a missing text."""
    lists = {name: list(cell) for name, cell in row.items() if isinstance(cell, tuple | np.ndarray)}
    missing = {name: None for name, cell in row.items() if isinstance(cell, float) and cell != cell}
    return {**row, **lists, **missing}


def _refusal(bad: tuple[int, BadRow]) -> InvalidRequest:
    """The error for a row without an answer."""
    row, why = bad
    of_row = {"query": "query", "candidates": "candidates", "sentence": f"sentences.{row}"}
    return InvalidRequest(422, why.code, why.reason, field=of_row.get(why.column or "", f"pairs.{row}.{why.column}"))


def _column(kind: Kind, cells: list[Any], width: int) -> Column:
    """A column of an answer; None stands for a row that has none."""
    if kind == "number":
        return np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    if kind == "flag":
        return np.array([bool(cell) for cell in cells], np.bool_)
    if kind == "vector":
        nothing = [np.nan] * width
        return np.array([nothing if cell is None else cell for cell in cells], np.float32).reshape(-1, width)
    found = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):  # an assignment of all would make a matrix of lists of one length
        found[i] = cell
    return found
