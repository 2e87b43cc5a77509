"""Stores keep answered rows until the output can be written.

Every store appends to one partial file. A resumed batch first truncates it to the last checkpoint.
"""

import csv
import json
import math
import os
from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TextIO

from semblance.batch.checkpoint import Files, sync_folder
from semblance.batch.rows import Chunk, Row
from semblance.errors import BatchError


class AppendOnly:
    """A file that grows by appending; opening it truncates it to `size` bytes."""

    def __init__(self, path: Path, size: int) -> None:
        """Open it.

        Raises:
            BatchError: another batch is writing it, or it is shorter than the checkpoint says.
        """
        self._file = path.open("ab")
        try:
            _lock(self._file.fileno(), path)
            if (found := self._file.tell()) < size:
                raise BatchError(f"{path}: {found} bytes, the checkpoint says {size}; --overwrite begins again")
            self._file.truncate(size)
        except BaseException:
            self._file.close()
            raise
        self.size = size

    def append(self, content: bytes) -> None:
        """Write at the end."""
        self._file.write(content)
        self.size += len(content)

    def sync(self) -> None:
        """Wait until everything is on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close it."""
        self._file.close()


class Store(Protocol):
    """Keeps rows, and writes the output from them."""

    def pack(self, chunk: Chunk, kept: Sequence[int], cells: Sequence[Row]) -> bytes:
        """Bytes for the partial file: the chunk's rows at the positions `kept`, each with its answer's cells."""
        ...

    def finish(self, files: Files) -> None:
        """Write the output; safe to call again after an interruption."""
        ...


class JsonLinesStore:
    """JSON Lines: the partial file is the output."""

    def pack(self, chunk: Chunk, kept: Sequence[int], cells: Sequence[Row]) -> bytes:
        """See `Store`."""
        return b"".join(map(_line, merged(chunk, kept, cells)))

    def finish(self, files: Files) -> None:
        """See `Store`."""
        if files.partial.exists():
            os.replace(files.partial, files.output)
            sync_folder(files.output.parent)


class CsvStore(JsonLinesStore):
    """CSV: kept as JSON Lines until all columns are known. A list is written as JSON, None as an empty cell."""

    def __init__(self, separator: str, columns: Sequence[str] | None, adds: Sequence[str]) -> None:
        """Columns are ordered: the input's first, then the answers'."""
        self._separator = separator
        self._columns = columns or ()
        self._adds = adds

    def finish(self, files: Files) -> None:
        """See `Store`."""
        if not files.partial.exists():
            return
        found = dict.fromkeys(chain(self._columns, chain.from_iterable(_read(files.partial))))
        columns = [name for name in found if name not in self._adds] + list(self._adds)
        with files.unfinished.open("w", encoding="utf-8", newline="") as file:
            self._write(file, columns, _read(files.partial))
            file.flush()
            os.fsync(file.fileno())
        replace_output(files)

    def _write(self, file: TextIO, columns: list[str], rows: Iterator[Row]) -> None:
        writer = csv.writer(file, delimiter=self._separator, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)


def merged(chunk: Chunk, kept: Sequence[int], cells: Sequence[Row]) -> Iterator[Row]:
    """Input rows with their answers' cells."""
    for place, answer in zip(kept, cells, strict=True):
        row = chunk.rows[place]
        assert isinstance(row, dict), "what is answered was read"
        yield {**row, **answer}


def replace_output(files: Files) -> None:
    """Move the finished file to the output's path, then delete the partial one."""
    os.replace(files.unfinished, files.output)
    sync_folder(files.output.parent)
    files.partial.unlink()


def _line(row: Row) -> bytes:
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        text = json.dumps(_finite(row), ensure_ascii=False, allow_nan=False, default=_plain)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _finite(value: Any) -> Any:
    """The value with None for every number that JSON cannot represent."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line.decode("utf-8", "surrogatepass"))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> str:
    """Values of Parquet for which JSON has no type."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise BatchError(f"JSON has nothing for {type(value).__name__}: write .parquet instead")


def _lock(handle: int, path: Path) -> None:
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BatchError(f"{path}: another batch is writing it") from None
