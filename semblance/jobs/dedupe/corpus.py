"""A file's distinct texts with their embeddings; texts with the same words are one.

Embedding goes on where it stopped, in working files that stay until the command is done, or as long as the user wants.
"""

import hashlib
import json
from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.same_words import same_words, text_order
from semblance.errors import BatchError
from semblance.extras import needs
from semblance.jobs.batch.job import partial_of
from semblance.jobs.batch.tasks import BatchOptions, default_of, find_model
from semblance.jobs.dedupe.session import DedupeSession
from semblance.tables.output_file import errors_of, naming, open_alone, write_alone
from semblance.tables.rows import BadRow, RowSource, readable, text_of

with needs("near-duplicates of a file", extra="search"):
    import pyarrow.parquet as pq

Matrix = npt.NDArray[np.float32]
ROWS_AT_ONCE = 4096
VECTORS_AT_ONCE = 16_384
MISSING = -1  # no text, or no vector
TEXT = "text"  # the column of the file of distinct texts


class DistinctTexts:
    """Distinct texts by `text_order`, in a file of JSON Lines.

    Attributes:
        path: of that file; its one column is `text`.
        of_row: for each row of the input the number of its text; -1 for rows without one.
        first_row: for each text the first row that has its words, from 0.
        line_of_row: for each row of a CSV or TSV file the line on which it begins; empty for others.
        bad: row, from 0 -> why it has no text.
    """

    def __init__(self, path: Path) -> None:
        """Start without texts of the file."""
        self.path = path
        self.of_row = array("q")
        self.first_row = array("q")
        self.line_of_row = array("q")
        self.bad: dict[int, BadRow] = {}

    def read(self, numbers: Collection[int]) -> dict[int, str]:
        """Some of the texts by number."""
        wanted = set(numbers)
        with self.path.open(encoding="utf-8") as file:
            return {number: json.loads(line)[TEXT] for number, line in enumerate(file) if number in wanted}


@dataclass(frozen=True)
class TextVectors:
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


@dataclass(frozen=True)
class EmbeddedCorpus:
    """A file whose texts have vectors."""

    source: RowSource
    texts: DistinctTexts
    vectors: TextVectors

    def first_row(self, vector: int) -> int:
        """The first row, from 0, that has the words of a vector's text."""
        return int(self.texts.first_row[int(self.vectors.texts[vector])])

    def without_vector(self) -> list[tuple[int, BadRow]]:
        """Rows, from 0, without a vector, and why; an empty line is none of them."""
        reasons = ((row, self.texts.bad.get(row) or self.vectors.bad.get(n)) for row, n in enumerate(self.texts.of_row))
        lines = self.texts.line_of_row
        return [(row, reason.at(lines[row] if lines else None)) for row, reason in reasons if reason is not None]


async def embed_corpus(session: DedupeSession, source: RowSource) -> EmbeddedCorpus:
    """Embed the distinct texts of a column.

    Raises:
        BatchError: the rows or the model do not fit.
        SemblanceError: the service does not answer; what was embedded is kept for the next time.
    """
    for note in source.notes:
        session.say(note)
    session.step("reading", 0.0)
    texts = collect(source, session.options.column, session.working_file("texts.jsonl"))
    return EmbeddedCorpus(source, texts, await _embed(session, texts, session.working_file("vectors.parquet")))


def remove_working_files(session: DedupeSession) -> None:
    """Remove the texts and their vectors."""
    vectors = session.working_file("vectors.parquet")
    texts = session.working_file("texts.jsonl")
    for path in (texts, vectors, _identity_path(vectors), errors_of(vectors), partial_of(vectors)):
        path.unlink(missing_ok=True)


def collect(source: RowSource, column: str, path: Path) -> DistinctTexts:
    """Write the distinct texts of a column to `path`, of those with the same words the first by `text_order`.

    Raises:
        BatchError: no row has a text; there is no file then.
    """
    found = DistinctTexts(path)
    numbers: dict[bytes, int] = {}  # by digest, in the order of the rows
    texts: list[str] = []
    first_row: list[int] = []
    of_row: list[int] = []
    for row, text in _texts(source, column, found.line_of_row):
        if isinstance(text, BadRow):
            found.bad[row] = text
        if not isinstance(text, str):
            of_row.append(MISSING)
            continue
        key = blake2b(same_words(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        number = numbers.setdefault(key, len(numbers))
        of_row.append(number)
        if number == len(texts):
            texts.append(text)
            first_row.append(row)
        else:
            texts[number] = min(texts[number], text, key=text_order)
    if not numbers:
        raise BatchError(f"{source.file.path}: no row has a text in the column {column!r}")
    order = sorted(range(len(texts)), key=lambda number: text_order(texts[number]))
    places = {number: place for place, number in enumerate(order)} | {MISSING: MISSING}
    found.of_row.extend(places[number] for number in of_row)
    found.first_row.extend(first_row[number] for number in order)
    with naming(path), open(open_alone(path), "w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps({TEXT: texts[number]}) + "\n" for number in order)
    return found


def _texts(source: RowSource, column: str, lines: "array[int]") -> Iterator[tuple[int, str | BadRow | None]]:
    """Each row's number and its text, None for an empty line."""
    for chunk in source.chunks(0, ROWS_AT_ONCE):
        lines.extend(chunk.lines)
        for row, cells in enumerate(chunk.rows, chunk.before):
            if cells is None:
                yield row, None
                continue
            try:
                yield row, text_of(readable(cells).get(column), column).strip()
            except BadRow as why:
                yield row, why


async def _embed(session: DedupeSession, texts: DistinctTexts, output: Path) -> TextVectors:
    """Embed the texts into a Parquet file, or read that file if it is of these texts and this model.

    A JSON file beside it has a digest of the texts and the model's key.
    """
    options = session.options
    models = await session.client.models()
    found = find_model(models, options.model or default_of(models, "/embed"), "embedding")
    identity_path = _identity_path(output)
    identity = {"texts": _digest(texts.path), "model": found.id, "fingerprint": found.fingerprint}
    if not output.exists() or _read_json(identity_path) != identity:
        if not partial_of(output).exists():
            output.unlink(missing_ok=True)
        identity_path.unlink(missing_ok=True)
        batch = BatchOptions("embed", (TEXT,), model=found.id, prefix="")
        doing = ("embedding", len(texts.first_row), "texts")
        await session.batch(texts.path, output, batch, overwrite=options.overwrite, doing=doing)
        write_alone(identity_path, json.dumps(identity))
    errors = errors_of(output)
    lines = errors.read_text(encoding="utf-8").splitlines() if errors.exists() else []
    bad = {line["row"] - 1: BadRow(line["code"], line["reason"]) for line in map(json.loads, lines)}
    numbers = np.setdiff1d(np.arange(len(texts.first_row), dtype=np.int64), np.fromiter(bad, np.int64, len(bad)))
    return TextVectors(_unit_vectors(output, len(numbers), found.dim or 0), numbers, found.id, bad)


def _identity_path(vectors: Path) -> Path:
    return vectors.with_suffix(".json")


def _unit_vectors(path: Path, rows: int, dim: int) -> Matrix:
    values = np.empty((rows, dim), dtype=np.float32)
    at = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=VECTORS_AT_ONCE, columns=["embedding"]):
                part = batch.column(0).flatten().to_numpy().reshape(batch.num_rows, dim)
                values[at : at + len(part)] = part
                at += len(part)
    except (OSError, ValueError) as error:  # pyarrow's own are of these kinds
        why = " ".join(str(error).split())
        raise BatchError(f"{path} cannot be read: remove it, and its texts are embedded anew ({why})") from error
    if at != rows:  # a list of bad rows is lost
        raise BatchError(f"{path} has {at} vectors, of {rows} texts: remove it, and its texts are embedded anew")
    # A text of words that no model knows may have the vector 0: it is near to nothing.
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-12))
    return values


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
