"""Reads and writes Parquet with pyarrow. From Parquet to Parquet, columns keep their types."""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from semblance.batch.checkpoint import Files
from semblance.batch.rows import Chunk, Kind, Row
from semblance.batch.stores import merged, replace_output
from semblance.errors import BatchError
from semblance.extras import needs

with needs("Parquet", extra="parquet"):
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS_IN_A_GROUP = 65_536
_TYPES: Mapping[Kind, Any] = {
    "number": pa.float64(),
    "text": pa.string(),
    "flag": pa.bool_(),
    "place": pa.int64(),
    "places": pa.list_(pa.int64()),
    "numbers": pa.list_(pa.float64()),
    "vector": pa.list_(pa.float32()),
}


class ParquetSource:
    """A Parquet file; positions are rows."""

    def __init__(self, path: Path, needed: list[str] | None) -> None:
        """Read the schema.

        Raises:
            BatchError: it is not a Parquet file.
        """
        self._path = path
        try:
            with pq.ParquetFile(path) as file:
                self.schema = file.schema_arrow
                self.total = file.metadata.num_rows
        except pa.ArrowInvalid as error:
            raise BatchError(f"{path}: {error}") from None
        self.columns: list[str] | None = self.schema.names
        self._needed = needed

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """See `Source`."""
        at = 0
        with pq.ParquetFile(self._path) as file:
            for batch in file.iter_batches(batch_size=size):
                at += batch.num_rows
                if at <= start:
                    continue
                table = pa.Table.from_batches([batch]).slice(max(0, batch.num_rows - (at - start)))
                read = table if self._needed is None else table.select(self._needed)
                try:
                    rows = read.to_pylist()
                except ValueError as error:  # such as a time in nanoseconds, for which Python has no type
                    raise BatchError(f"{self._path}: {error}") from None
                yield Chunk(at - table.num_rows, rows, at, table)


class ParquetStore:
    """Parquet, kept as consecutive Arrow streams, which unlike Parquet can be appended to and truncated."""

    def __init__(self, schema: Any, adds: Mapping[str, Kind]) -> None:
        """New columns have fixed types; others keep the input's, or get one from their values."""
        self._schema = schema
        self._adds = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in adds.items()])

    def pack(self, chunk: Chunk, kept: Sequence[int], cells: Sequence[Row]) -> bytes:
        """See `Store`."""
        if not kept:
            return b""
        if chunk.table is not None:
            table = chunk.table.take(pa.array(kept))
        else:
            rows = list(merged(chunk, kept, [{}] * len(kept)))
            table = pa.table({name: _column(name, rows) for name in dict.fromkeys(key for row in rows for key in row)})
        for field in self._adds:
            table = table.append_column(field, pa.array([answer[field.name] for answer in cells], field.type))
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    def finish(self, files: Files) -> None:
        """See `Store`."""
        if not files.partial.exists():
            return
        try:
            self._write(files)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BatchError(f"a column has values of several types ({error}); write .jsonl instead") from None
        replace_output(files)

    def _write(self, files: Files) -> None:
        found = {table.schema: None for table in _streams(files.partial)}
        if found:
            schema = pa.unify_schemas(list(found), promote_options="permissive")
        else:
            schema = pa.schema([*(self._schema or ()), *self._adds])
        nothing = schema.empty_table()
        with files.unfinished.open("wb") as file:
            with pq.ParquetWriter(file, schema) as writer:
                waiting = [nothing]
                for table in _streams(files.partial):
                    waiting.append(table)
                    if sum(each.num_rows for each in waiting) >= ROWS_IN_A_GROUP:
                        writer.write_table(pa.concat_tables(waiting, promote_options="permissive"))
                        waiting = [nothing]
                writer.write_table(pa.concat_tables(waiting, promote_options="permissive"))
            file.flush()
            os.fsync(file.fileno())


def _column(name: str, rows: Sequence[Row]) -> Any:
    try:
        return pa.array([row.get(name) for row in rows])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BatchError(f"column {name!r} has values of several types ({error}); write .jsonl instead") from None


def _streams(path: Path) -> Iterator[Any]:
    """Each appended chunk, as a table."""
    with pa.OSFile(str(path)) as file:
        while file.tell() < file.size():
            with pa.ipc.open_stream(file) as reader:
                yield reader.read_all()
