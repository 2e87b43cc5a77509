"""Embeddings of the distinct texts, as unit vectors; an interrupted run goes on where it stopped."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semblance.extras import needs
from semblance.jobs.batch.job import partial_of
from semblance.jobs.batch.tasks import BatchOptions, default_of, find_model
from semblance.jobs.dedupe.options import CorpusSession
from semblance.jobs.dedupe.texts import TEXT, DistinctTexts
from semblance.tables.outputs import errors_of
from semblance.tables.rows import BadRow

with needs("near-duplicates of a file", extra="search"):
    import pyarrow.parquet as pq

Matrix = npt.NDArray[np.float32]
ROWS_AT_ONCE = 16_384


@dataclass(frozen=True)
class CorpusVectors:
    """Unit vectors of texts.

    Attributes:
        values: float32 [n, D].
        texts: int64 [n], the number of each vector's text, rising.
        model: id of the model.
        bad: number of a text -> why it has no vector.
    """

    values: Matrix
    texts: npt.NDArray[np.int64]
    model: str
    bad: Mapping[int, BadRow]


async def embed(work: CorpusSession, texts: DistinctTexts, output: Path) -> CorpusVectors:
    """Embed the texts into a Parquet file, or read that file if it is of these texts and this model.

    Args:
        work: names the model; None: the default of `/embed`. Or it says to embed again, and forget an interrupted run.
        texts: to embed.
        output: a path that ends in `.parquet`; beside it lies a `.json` that says what it is of.

    Raises:
        BatchError, SemblanceError: as `run_batch`.
    """
    models, overwrite = await work.client.models(), work.asking.overwrite
    found = find_model(models, work.asking.model or default_of(models, "/embed"), "embedding")
    says = output.with_suffix(".json")
    identity = {"texts": _digest(texts.path), "model": found.id, "fingerprint": found.fingerprint}
    if overwrite or not output.exists() or _read(says) != identity:
        if not partial_of(output).exists():
            output.unlink(missing_ok=True)
        says.unlink(missing_ok=True)
        options = BatchOptions("embed", (TEXT,), model=found.id, prefix="")
        doing = ("embedding", len(texts.first_row), "texts")
        await work.batch(texts.path, output, options, overwrite=overwrite, doing=doing)
        says.write_text(json.dumps(identity), encoding="utf-8")
    errors = errors_of(output)
    lines = errors.read_text(encoding="utf-8").splitlines() if errors.exists() else []
    bad = {line["row"] - 1: BadRow(line["code"], line["reason"]) for line in map(json.loads, lines)}
    numbers = np.setdiff1d(np.arange(len(texts.first_row), dtype=np.int64), np.fromiter(bad, np.int64, len(bad)))
    return CorpusVectors(_unit_vectors(output, len(numbers), found.dim or 0), numbers, found.id, bad)


def remove(output: Path) -> None:
    """Remove the file and those beside it."""
    for path in (output, output.with_suffix(".json"), errors_of(output), partial_of(output)):
        path.unlink(missing_ok=True)


def _unit_vectors(path: Path, rows: int, dim: int) -> Matrix:
    values = np.empty((rows, dim), dtype=np.float32)
    at = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=["embedding"]):
            part = batch.column(0).flatten().to_numpy().reshape(batch.num_rows, dim)
            values[at : at + len(part)] = part
            at += len(part)
    # A text of words that no model knows may have the vector 0: it is near to nothing.
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-12))
    return values


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
