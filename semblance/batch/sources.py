"""Readers of JSON Lines, lines of text and CSV, from any row on; an unreadable row does not stop the others."""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from semblance.batch.rows import Chunk, Row, Unreadable
from semblance.errors import BatchError

_RAW_BYTE = re.compile("[\udc80-\udcff]").search  # what surrogateescape makes of a byte that is not UTF-8


class JsonLines:
    """One JSON object a line; a row has the number of its line."""

    columns: list[str] | None = None

    def __init__(self, path: Path, row: Callable[[bytes], Row | Unreadable | None] | None = None) -> None:
        self._path = path
        self.total = path.stat().st_size
        self._row = row or _object

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """See `Source`."""
        with self._path.open("rb") as file:
            position = sum(map(len, islice(file, start)))
            while lines := list(islice(file, size)):
                position += sum(map(len, lines))
                yield Chunk(start, [self._row(line) for line in lines], position)
                start += len(lines)


class Lines(JsonLines):
    """A text a line, in UTF-8."""

    def __init__(self, path: Path, column: str) -> None:
        """Name the one column."""
        super().__init__(path, lambda line: _text(line, column))
        self.columns = [column]


class Csv:
    """A header and records, in UTF-8; neither the header nor empty lines count as rows."""

    def __init__(self, path: Path, separator: str) -> None:
        """Read the header.

        Raises:
            BatchError: there is no header, or it has a column twice.
        """
        self._path = path
        self._separator = separator
        self.total = path.stat().st_size
        csv.field_size_limit(sys.maxsize)  # the service limits the length of a text
        with path.open("rb") as file:
            header, _, _ = next(self._records(file), (Unreadable("there is no header"), 0, 1))
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
                rows = [self._row(cells) for cells, _, _ in found]
                yield Chunk(start, [*rows], found[-1][1], lines=[line for _, _, line in found])
                start += len(found)

    def _records(self, file: BinaryIO) -> Iterator[tuple[list[str] | Unreadable, int, int]]:
        """Each record, the byte at which it ends, and the line on which it begins."""
        position = 0

        def lines() -> Iterator[str]:
            nonlocal position
            for line in file:
                encoding = "utf-8" if position else "utf-8-sig"
                position += len(line)
                yield line.decode(encoding, "surrogateescape")

        reader = csv.reader(lines(), delimiter=self._separator)
        while True:
            line = reader.line_num + 1
            try:
                cells: list[str] | Unreadable = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                cells = Unreadable(f"not CSV: {error}")
            if isinstance(cells, list) and any(map(_RAW_BYTE, cells)):
                cells = Unreadable("not UTF-8: save the file as UTF-8")
            if cells:
                yield cells, position, line

    def _row(self, cells: list[str] | Unreadable) -> Row | Unreadable:
        if isinstance(cells, Unreadable):
            return cells
        if len(cells) != self._width:
            return Unreadable(f"{len(cells)} cells, the header has {self._width}")
        return dict(zip(self.columns or (), cells, strict=True))


def _text(line: bytes, column: str) -> Row | Unreadable | None:
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return Unreadable("not UTF-8: save the file as UTF-8")
    return {column: text} if text else None


def _object(line: bytes) -> Row | Unreadable | None:
    try:
        text = line.decode("utf-8-sig")
        if not text.strip():
            return None
        found = json.loads(text, parse_constant=_no_number)
    except UnicodeDecodeError:
        return Unreadable("not UTF-8: save the file as UTF-8")
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}")
    return found if isinstance(found, dict) else Unreadable("not a JSON object")


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
