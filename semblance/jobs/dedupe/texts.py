"""The distinct texts of a file's column, and which row has which: texts with the same words are one."""

import json
from array import array
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TextIO

from core.same_words import same_words
from semblance.errors import BatchError
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import open_source
from semblance.tables.rows import BadRow, RowSource, Unreadable, text_of

ROWS_AT_ONCE = 4096
NO_TEXT = -1
TEXT = "text"  # the column of the file of distinct texts


class DistinctTexts:
    """Distinct texts in the order in which they appear, in a file of JSON Lines.

    Attributes:
        path: of that file; its one column is `text`.
        of_row: for each row of the input the number of its text; -1 for rows without one.
        first_row: for each text the first row that has it, from 0.
        line_of_row: for each row of a CSV or TSV file the line on which it begins; empty for others.
        bad: row, from 0 -> why it has no text.
    """

    def __init__(self, path: Path) -> None:
        """Start without texts of the file."""
        self.path = path
        self.of_row = array("q")
        self.first_row = array("q")
        self.line_of_row = array("q")  # of CSV and TSV files; else empty
        self.bad: dict[int, BadRow] = {}

    def read(self, numbers: Collection[int]) -> dict[int, str]:
        """Some of the texts by number."""
        wanted = set(numbers)
        with self.path.open(encoding="utf-8") as file:
            return {number: json.loads(line)[TEXT] for number, line in enumerate(file) if number in wanted}


@dataclass(frozen=True)
class Input:
    """A column of a file.

    Attributes:
        path: of the file.
        source: its rows.
        column: of the texts.
        option: name of the command's option that chooses the column.
        adds: the new columns, none of which may be there.
    """

    path: Path
    source: RowSource
    column: str
    option: str
    adds: Collection[str] = ()

    def refuse_taken(self, adds: Collection[str], columns: Iterable[str]) -> None:
        """Look that none of the new columns is there; raises BatchError."""
        if taken := sorted(set(adds).intersection(columns)):
            raise BatchError(f"{self.path} has a column {taken[0]!r} already: rename it, or choose another --prefix")

    def lacks(self, what: str, columns: Iterable[str]) -> BatchError:
        """The error that there is no such thing, but columns of other names."""
        known = ", ".join(map(repr, columns))
        return BatchError(
            f"{self.path}: {what} {self.column!r}, but {known or 'no other'}; {self.option} names another"
        )


def opened(path: Path, column: str, read_as: FileFormat, adds: Collection[str] = (), option: str = "--column") -> Input:
    """The input, which has this column and none of the new ones, where its columns are known before its rows.

    Raises:
        BatchError: it cannot be read, lacks the column, or has a new one.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    found = Input(path, open_source(path, lines=column, read_as=read_as), column, option, adds)
    there = found.source.columns
    if there is not None and column not in there:
        raise found.lacks("there is no column", there)
    found.refuse_taken(adds, there or ())
    return found


def collect(of: Input, path: Path) -> DistinctTexts:
    """Write the distinct texts of a column to `path`, each as its first row has it.

    Raises:
        BatchError: no row has a text, or one has a new column; there is no file then.
    """
    found = DistinctTexts(path)
    known: dict[str, None] = {}  # columns of the first rows
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            _write_distinct(of, found, known, file)
        if not found.first_row:
            if known and of.column not in known:
                raise of.lacks("no row has a column", known)
            raise BatchError(f"{of.path}: no row has a text in the column {of.column!r}")
    except BatchError:
        path.unlink()
        raise
    return found


def _write_distinct(of: Input, found: DistinctTexts, known: dict[str, None], file: TextIO) -> None:
    """Write the texts of a column, and what `found` says of them; `known` gets the columns of the first rows."""
    numbers: dict[bytes, int] = {}  # by digest: the texts themselves stay on disk
    for row, text in _rows(of, known, found.line_of_row):
        if isinstance(text, BadRow):
            found.bad[row] = text
        if not isinstance(text, str):
            found.of_row.append(NO_TEXT)
            continue
        key = blake2b(same_words(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        number = numbers.setdefault(key, len(numbers))
        if number == len(found.first_row):
            found.first_row.append(row)
            file.write(json.dumps({TEXT: text}) + "\n")
        found.of_row.append(number)


def _rows(of: Input, known: dict[str, None], lines: "array[int]") -> Iterator[tuple[int, str | BadRow | None]]:
    """Each row's number and its text, None for an empty line; the columns of the first 100 rows go into `known`."""
    for chunk in of.source.chunks(0, ROWS_AT_ONCE):
        lines.extend(chunk.lines)
        for row, cells in enumerate(chunk.rows, chunk.before):
            if cells is None:
                yield row, None
            elif isinstance(cells, Unreadable):
                yield row, BadRow("unreadable", cells.reason)
            else:
                of.refuse_taken(of.adds, cells)
                if row < 100:
                    known.update(dict.fromkeys(cells))
                try:
                    yield row, text_of(cells.get(of.column), of.column).strip()
                except BadRow as why:
                    yield row, why
