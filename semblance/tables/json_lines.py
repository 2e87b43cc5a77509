"""Readers of JSON Lines and lines of text, from any row on; an unreadable row does not stop the others."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from math import isinf
from typing import Any

from semblance.tables.decoding import SHOWN, encoding_of, lines_of, open_text
from semblance.tables.input_file import InputFile
from semblance.tables.rows import LONE_SURROGATE, Chunk, Row, Unreadable, next_parts

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # half of a character, which may lack the other half


class JsonLines:
    """One JSON object a line; a row has the number of its line."""

    columns: list[str] | None = None
    decimal_comma = False

    def __init__(
        self, file: InputFile, encoding: str | None = None, row: Callable[[str], Row | Unreadable | None] | None = None
    ) -> None:
        """Read the whole file once.

        Raises:
            BatchError: it is in another encoding; names the first bad line.
        """
        self.file = file
        self.total = file.size
        self.notes: list[str] = []
        self._encoding = encoding_of(file.path, encoding, self.notes.append)
        self._row = row or _object

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """Chunks of rows after the first `start`, as in `RowSource.chunks`."""
        return self.file.watched(self._chunks(start, size))

    def _chunks(self, start: int, size: int) -> Iterator[Chunk]:
        with open_text(self.file.path, self._encoding) as file:
            lines = islice(lines_of(file), start, None)
            while found := next_parts(lines, size):
                yield Chunk(start, [self._row(line) for line, _ in found], found[-1][1])
                start += len(found)


class TextLines(JsonLines):
    """A text a line."""

    def __init__(self, file: InputFile, column: str, encoding: str | None = None) -> None:
        """Name the one column; raises as `JsonLines` does."""
        super().__init__(file, encoding, lambda line: _text(line, column))
        self.columns = [column]


def _text(line: str, column: str) -> Row | Unreadable | None:
    text = line.strip()
    return {column: text} if text else None


def _object(line: str) -> Row | Unreadable | None:
    if not line.strip():
        return None
    try:
        found = json.loads(line, parse_constant=_no_number, object_pairs_hook=_each_once, parse_float=_finite)
        if _SURROGATE.search(line):
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Unreadable(LONE_SURROGATE)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}")
    return found if isinstance(found, dict) else Unreadable("not a JSON object")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in counts if counts[name] > 1)
        raise ValueError(f"the key {twice!r} stands twice in an object")
    return found


def _finite(digits: str) -> float:
    if isinf(found := float(digits)):
        raise ValueError(f"{digits[:SHOWN]} is too large for a number of 64 bits")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
