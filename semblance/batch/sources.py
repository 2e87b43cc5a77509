"""Rows of an input file, a chunk at a time, from any row on; a row that cannot be read does not stop the others."""

import csv
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from semblance.errors import BatchError

Row = dict[str, Any]
JSON_LINES = (".jsonl", ".ndjson")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet",)
_RAW_BYTE = re.compile("[\udc80-\udcff]").search  # what surrogateescape makes of a byte that is not UTF-8
KNOWN = "expected .jsonl, .ndjson, .csv, .tsv or .parquet"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """In the place of a row."""

    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows.

    Attributes:
        before: how many rows come before it.
        rows: with None for an empty line.
        position: how far into the input this chunk reaches, in the unit of the source's `total`.
        table: of Parquet, with all its columns in their own types.
    """

    before: int
    rows: list[Row | Unreadable | None]
    position: int
    table: Any = None


class Source(Protocol):
    """An input file.

    Attributes:
        total: its size in bytes, or its rows.
        columns: where the file says before its first row which ones there are.
    """

    total: int
    columns: list[str] | None

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """Leave out `start` rows, and go on `size` rows at a time."""
        ...


class JsonLines:
    """One JSON object a line; the number of a row is that of its line."""

    columns: list[str] | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total = path.stat().st_size

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """See `Source`."""
        with self._path.open("rb") as file:
            position = sum(map(len, islice(file, start)))
            while lines := list(islice(file, size)):
                position += sum(map(len, lines))
                yield Chunk(start, [_object(line) for line in lines], position)
                start += len(lines)


class Csv:
    """A header and records, in UTF-8; the header and empty lines are not counted."""

    def __init__(self, path: Path, separator: str) -> None:
        """Read the header.

        Raises:
            BatchError: there is none, or a column twice.
        """
        self._path = path
        self._separator = separator
        self.total = path.stat().st_size
        csv.field_size_limit(sys.maxsize)  # how long a text may be is the service's to say
        with path.open("rb") as file:
            header, _ = next(self._records(file), (Unreadable("there is no header"), 0))
        if isinstance(header, Unreadable):
            raise BatchError(f"{path}: {header.reason}")
        if twice := sorted({name for name in header if header.count(name) > 1}):
            raise BatchError(f"{path}: more than one column {', '.join(map(repr, twice))}")
        self.columns: list[str] | None = header
        self._width = len(header)

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """See `Source`."""
        with self._path.open("rb") as file:
            records = islice(self._records(file), start + 1, None)
            while found := list(islice(records, size)):
                yield Chunk(start, [self._row(cells) for cells, _ in found], found[-1][1])
                start += len(found)

    def _records(self, file: BinaryIO) -> Iterator[tuple[list[str] | Unreadable, int]]:
        """Each record, and where it ends."""
        position = 0

        def lines() -> Iterator[str]:
            nonlocal position
            for line in file:
                encoding = "utf-8" if position else "utf-8-sig"
                position += len(line)
                yield line.decode(encoding, "surrogateescape")

        reader = csv.reader(lines(), delimiter=self._separator)
        while True:
            try:
                cells: list[str] | Unreadable = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                cells = Unreadable(f"not CSV: {error}")
            if isinstance(cells, list) and any(map(_RAW_BYTE, cells)):
                cells = Unreadable("not UTF-8")
            if cells:
                yield cells, position

    def _row(self, cells: list[str] | Unreadable) -> Row | Unreadable:
        if isinstance(cells, Unreadable):
            return cells
        if len(cells) != self._width:
            return Unreadable(f"{len(cells)} cells, the header has {self._width}")
        return dict(zip(self.columns or (), cells, strict=True))


def open_source(path: Path, needed: list[str] | None = None) -> Source:
    """The input, by its suffix.

    Args:
        path: of the file.
        needed: columns that are read as Python objects, where that costs (Parquet); all of them without it.

    Raises:
        BatchError: no such file, or none of these kinds.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    suffix = path.suffix.lower()
    try:
        if suffix in JSON_LINES:
            return JsonLines(path)
        if suffix in SEPARATORS:
            return Csv(path, SEPARATORS[suffix])
        if suffix in PARQUET:
            from semblance.batch.parquet import ParquetSource

            return ParquetSource(path, needed)
    except OSError as error:
        raise BatchError(f"{path}: {error.strerror or error}") from error
    raise BatchError(f"{path}: {KNOWN}")


def _object(line: bytes) -> Row | Unreadable | None:
    try:
        text = line.decode("utf-8-sig")
        if not text.strip():
            return None
        found = json.loads(text, parse_constant=_no_number)
    except UnicodeDecodeError:
        return Unreadable("not UTF-8")
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}")
    return found if isinstance(found, dict) else Unreadable("not a JSON object")


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
