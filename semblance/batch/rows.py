"""The types that every other module of a batch works with: rows, chunks of rows, sources, kinds of output columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Row = dict[str, Any]
Kind = Literal["number", "text", "flag", "place", "places", "numbers", "vector"]  # of an output column
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
        lines: for CSV, the line of the file on which each row begins, from 1; a row may take several.
    """

    before: int
    rows: list[Row | Unreadable | None]
    position: int
    table: Any = None
    lines: Sequence[int] = ()


class Source(Protocol):
    """An input file.

    Attributes:
        total: size in bytes, or number of rows.
        columns: column names, where the file has them before its first row.
    """

    total: int
    columns: list[str] | None

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """Skip `start` rows, then yield chunks of `size` rows."""
        ...
