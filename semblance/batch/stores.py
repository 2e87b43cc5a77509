"""Where answered rows are kept until the output can be made of them.

Every store appends to one partial file, which is cut back to the last checkpoint before it goes on.
"""

import csv
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TextIO

from semblance.batch.checkpoint import Files, sync_folder
from semblance.batch.sources import JSON_LINES, KNOWN, PARQUET, SEPARATORS, Chunk, Row
from semblance.batch.tasks import Kind
from semblance.errors import BatchError


class AppendOnly:
    """A file that grows by appending; what an interrupted batch left behind `size` is cut off."""

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
        """Wait until all is on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close it."""
        self._file.close()


class Store(Protocol):
    """How rows are kept, and how the output is made of them."""

    def pack(self, chunk: Chunk, kept: Sequence[int], cells: Sequence[Row]) -> bytes:
        """Rows for the partial file: those of the chunk at the places `kept`, with the cells of their answers."""
        ...

    def finish(self, files: Files) -> None:
        """Make the output; killed and called again, it still does."""
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


class CsvStore:
    """CSV: kept as JSON Lines until all columns are known. Lists are written as JSON, nothing as an empty cell."""

    def __init__(self, separator: str, columns: Sequence[str] | None, adds: Sequence[str]) -> None:
        """Keep the order of columns: the input's, then the answers'."""
        self._separator = separator
        self._columns = columns or ()
        self._adds = adds

    def pack(self, chunk: Chunk, kept: Sequence[int], cells: Sequence[Row]) -> bytes:
        """See `Store`."""
        return b"".join(map(_line, merged(chunk, kept, cells)))

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


def open_store(output: Path, columns: Sequence[str] | None, schema: Any, adds: Mapping[str, Kind]) -> Store:
    """How the output is kept, by its suffix.

    Args:
        output: the file to make.
        columns: of the input, where they are known.
        schema: of the input, where it is Parquet.
        adds: columns of the answers.

    Raises:
        BatchError: none of these kinds.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    suffix = output.suffix.lower()
    if suffix in JSON_LINES:
        return JsonLinesStore()
    if suffix in SEPARATORS:
        return CsvStore(SEPARATORS[suffix], columns, list(adds))
    if suffix in PARQUET:
        from semblance.batch.parquet import ParquetStore

        return ParquetStore(schema, adds)
    raise BatchError(f"{output}: {KNOWN}")


def merged(chunk: Chunk, kept: Sequence[int], cells: Sequence[Row]) -> Iterator[Row]:
    """Rows with their answers."""
    for place, answer in zip(kept, cells, strict=True):
        row = chunk.rows[place]
        assert isinstance(row, dict), "what is answered was read"
        yield {**row, **answer}


def replace_output(files: Files) -> None:
    """Put the finished file in the output's place; then the partial one is not needed."""
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
    """The same, with null for every number that JSON cannot write."""
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
    """What JSON has no type for, of Parquet."""
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
