"""Readers of JSON Lines and lines of text, from any row on; an unreadable row does not stop the others."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from semblance.batch.decoding import encoding_of, lines_of, open_text
from semblance.batch.rows import Chunk, Row, Unreadable


class JsonLines:
    """One JSON object a line; a row has the number of its line."""

    columns: list[str] | None = None
    notes: Sequence[str] = ()
    decimal_comma = False

    def __init__(
        self, path: Path, encoding: str | None = None, row: Callable[[str], Row | Unreadable | None] | None = None
    ) -> None:
        """Read the whole file once.

        Raises:
            BatchError: it is in another encoding; names the first bad line.
        """
        self._path = path
        self.total = path.stat().st_size
        self._encoding = encoding_of(path, encoding)
        self._row = row or _object

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """Chunks of rows after the first `start`, as in `RowSource.chunks`."""
        with open_text(self._path, self._encoding) as file:
            lines = islice(lines_of(file), start, None)
            while found := list(islice(lines, size)):
                yield Chunk(start, [self._row(line) for line, _ in found], found[-1][1])
                start += len(found)


class TextLines(JsonLines):
    """A text a line."""

    def __init__(self, path: Path, column: str, encoding: str | None = None) -> None:
        """Name the one column; raises as `JsonLines` does."""
        super().__init__(path, encoding, lambda line: _text(line, column))
        self.columns = [column]


def _text(line: str, column: str) -> Row | Unreadable | None:
    text = line.strip()
    if "\0" in text:
        return Unreadable("a NUL character")
    return {column: text} if text else None


def _object(line: str) -> Row | Unreadable | None:
    if not line.strip():
        return None
    try:
        found = json.loads(line, parse_constant=_no_number, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}")
    return found if isinstance(found, dict) else Unreadable("not a JSON object")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, _ in pairs if [key for key, _ in pairs].count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in an object")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
