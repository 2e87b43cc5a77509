"""The types of tables: rows, chunks of rows, sources, answers; and what is checked of rows and columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

from semblance.errors import BatchError
from semblance.tables.input_file import InputFile

CHUNK_BYTES = 16 << 20  # of a file, about
LONE_SURROGATE = "a lone surrogate is not a character"
Row = dict[str, Any]
Kind = Literal["number", "text", "flag", "integer", "integers", "numbers", "vector"]  # of an output column
Say = Callable[[str], None]  # a line for the user
Step = Callable[[str, float], None]  # what is being done, and which share of it is done


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands in the place of a row that cannot be read."""

    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of the input.

    Attributes:
        before: number of rows before this chunk.
        rows: None stands for an empty line.
        position: where this chunk ends in the input, in the unit of the source's `total`.
        table: for Parquet, the same rows with all columns in their own types.
        lines: for CSV and TSV, the line of the file on which each row begins, from 1; a row may take several.
    """

    before: int
    rows: list[Row | Unreadable | None]
    position: int
    table: Any = None
    lines: Sequence[int] = ()

    def line(self, place: int) -> int | None:
        """The line of one of the rows, where it is not the row's own number."""
        return self.lines[place] if self.lines else None


class BadRow(Exception):
    """A row that gets no answer, with the reason."""

    def __init__(self, code: str, reason: str, column: str | None = None, line: int | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.column = column
        self.line = line  # of a CSV or TSV file, from 1: there it is not the number of the row

    def at(self, line: int | None) -> "BadRow":
        """The same of a row on that line."""
        return BadRow(self.code, self.reason, self.column, line)


def readable(row: "Row | Unreadable") -> Row:
    """The row; raises BadRow where it could not be read."""
    if isinstance(row, Unreadable):
        raise BadRow("unreadable", row.reason)
    return row


def text_of(value: object, column: str) -> str:
    """A value that must be a text; raises BadRow."""
    if value is None:
        raise BadRow("missing", "there is none", column)
    if not isinstance(value, str):
        raise BadRow("not_text", f"expected text, found {type(value).__name__}", column)
    if not value.strip():
        raise BadRow("empty_text", "the text has no visible character", column)
    if "\0" in value:
        raise BadRow("unreadable", "a NUL character", column)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRow("unreadable", LONE_SURROGATE, column) from None
    return value


Part = TypeVar("Part", bound=tuple[Any, ...])
Outcome = Row | BadRow | None  # of a row: its new cells, why it has none, or that it is an empty line


@dataclass(frozen=True, slots=True)
class Answered:
    """Rows of a chunk that have answers.

    Attributes:
        chunk: of the input.
        kept: positions in the chunk; one may come several times.
        cells: of each of these the new cells.
    """

    chunk: Chunk
    kept: Sequence[int]
    cells: Sequence[Row]


def next_parts(parts: Iterator[Part], size: int) -> list[Part]:
    """The next parts of a file: `size`, or fewer that make `CHUNK_BYTES`; of each the second says where it ends."""
    found: list[Part] = []
    for part in islice(parts, size):
        found.append(part)
        if part[1] - found[0][1] >= CHUNK_BYTES:
            break
    return found


class RowSource(Protocol):
    """The rows of an input file.

    Attributes:
        file: whose rows they are.
        total: size in bytes, or number of rows.
        columns: column names, where the file has them before its first row.
        notes: what a user should know of how the file is read, a line each.
        decimal_comma: whether a number may be written 0,5.
    """

    file: InputFile
    total: int
    columns: list[str] | None
    decimal_comma: bool

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know of how the file is read."""
        ...

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """Skip `start` rows, then yield chunks of `size` rows, or of fewer large ones."""
        ...


def numbered(source: RowSource) -> Iterator[tuple[int, Row | Unreadable]]:
    """The rows but for empty lines, each with its line, or its number where a file has no lines; from 1."""
    for chunk in source.chunks(0, 1000):
        for place, row in enumerate(chunk.rows):
            if row is not None:
                yield chunk.line(place) or chunk.before + place + 1, row


def columns_of(source: RowSource) -> list[str]:
    """The columns of a file: where it has none before its rows, those of all its objects."""
    if source.columns is not None:
        return source.columns
    rows = (row for _, row in numbered(source) if isinstance(row, dict))
    return list(dict.fromkeys(name for row in rows for name in row))


def no_column(source: RowSource, column: str, columns: Iterable[str]) -> BatchError:
    """The error that a file lacks a column that a command reads."""
    there = ", ".join(map(repr, columns)) or "no other"
    return BatchError(f"{source.file.path}: there is no column {column!r}, but {there}; --column names another")


def refuse_taken(source: RowSource, columns: Iterable[str], adds: Iterable[str]) -> None:
    """Look that the file has none of the new columns among its own; raises BatchError."""
    if taken := sorted({*adds}.intersection(columns)):
        raise BatchError(f"{source.file.path} has a column {taken[0]!r} already: rename it, or choose another --prefix")


Rows = Callable[[], Iterator[Answered]]  # all that have answers, from the first on
Write = Callable[[BinaryIO, RowSource, Mapping[str, Kind], Rows], None]  # into a file, with the new columns
