"""Reads and writes Parquet with pyarrow. From Parquet to Parquet, columns keep their types."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain
from typing import Any, BinaryIO

from semblance.errors import BatchError
from semblance.extras import needs
from semblance.tables.input_file import InputFile
from semblance.tables.rows import CHUNK_BYTES, Answered, Chunk, Kind, Rows, RowSource

with needs("Parquet", extra="parquet"):
    import pyarrow as pa
    import pyarrow.parquet as pq

TYPES: Mapping[Kind, Any] = {
    "number": pa.float64(),
    "text": pa.string(),
    "flag": pa.bool_(),
    "integer": pa.int64(),
    "integers": pa.list_(pa.int64()),
    "numbers": pa.list_(pa.float64()),
    "vector": pa.list_(pa.float32()),
}
_READ_ROWS = 64  # at once: what they become in memory no size of the file says, as rows may share a long text
_AS_READ = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}  # no rows can be taken of a view


class ParquetSource:
    """A Parquet file; positions are rows."""

    def __init__(self, file: InputFile, needed: list[str] | None) -> None:
        """Read the schema of the file.

        Raises:
            BatchError: it is not a Parquet file, or has two columns of one name.
        """
        self.file, self._path = file, file.path
        try:
            with pq.ParquetFile(self._path) as opened:
                found = opened.schema_arrow
                self.schema = pa.schema([field.with_type(_as_read(field.type)) for field in found], found.metadata)
                self.total = opened.metadata.num_rows
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BatchError(f"{self._path}: {error}") from None
        self.columns: list[str] | None = self.schema.names
        if twice := sorted(name for name, count in Counter(self.schema.names).items() if count > 1):
            raise BatchError(f"{self._path}: more than one column {', '.join(map(repr, twice))}")
        self.notes: Sequence[str] = ()
        self.decimal_comma = False
        self._needed = None if needed is None else [name for name in needed if name in self.schema.names]

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """Chunks of rows after the first `start`, as in `RowSource.chunks`."""
        return self.file.watched(self._chunks(start, size))

    def _chunks(self, start: int, size: int) -> Iterator[Chunk]:
        at = 0
        try:
            with pq.ParquetFile(self._path) as file:
                for table in _tables(file, size):
                    at += table.num_rows
                    if at <= start:
                        continue
                    table = table.slice(max(0, table.num_rows - (at - start)))
                    if table.schema.types != self.schema.types:
                        table = table.cast(self.schema)
                    read = table if self._needed is None else table.select(self._needed)
                    yield Chunk(at - table.num_rows, self._rows(read), at, table)
        except (pa.ArrowException, OSError) as error:  # a damaged part
            raise BatchError(f"{self._path}: {error}") from None

    def _rows(self, table: Any) -> list[Any]:
        try:
            found: list[Any] = table.to_pylist()
            return found
        except (ValueError, OverflowError):
            cells = [self._cells(name, table[name]) for name in table.column_names]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*cells, strict=True)]

    def _cells(self, name: str, column: Any) -> list[Any]:
        try:
            found: list[Any] = column.to_pylist()
            return found
        except (ValueError, OverflowError) as error:
            if isinstance(error, OverflowError) or not pa.types.is_temporal(column.type):
                raise BatchError(f"{self._path}: column {name!r}: {error}") from None
        if pa.types.is_duration(column.type):  # of which no text is written
            return list(column.cast(pa.duration("us"), safe=False).to_pylist())
        # Nanoseconds, for which Python has no type: as texts of the form that other times get in JSON.
        return [each and each.replace(" ", "T") for each in column.cast(pa.string()).to_pylist()]


def _tables(file: Any, size: int) -> Iterator[Any]:
    """The rows of a Parquet file: `size` at a time, or fewer that take `CHUNK_BYTES` in memory."""
    held, rows, taken = [], 0, 0
    for batch in file.iter_batches(batch_size=min(size, _READ_ROWS)):
        held.append(batch)
        rows += batch.num_rows
        columns = (each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in batch.columns)
        taken += sum(column.nbytes for column in columns)
        if rows + _READ_ROWS > size or taken >= CHUNK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, taken = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _as_read(kind: Any) -> Any:
    """The type without views, also within lists and structs."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_read(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_as_read(kind.key_type), kind.item_field.with_type(_as_read(kind.item_type)), kind.keys_sorted)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        of_items = kind.value_field.with_type(_as_read(kind.value_type))
        if pa.types.is_fixed_size_list(kind):
            return pa.list_(of_items, kind.list_size)
        return pa.large_list(of_items) if pa.types.is_large_list(kind) else pa.list_(of_items)
    return _AS_READ.get(kind, kind)


def write_parquet(file: BinaryIO, source: RowSource, adds: Mapping[str, Kind], rows: Rows) -> None:
    """New columns have fixed types; others keep those of a Parquet input, or get one from their values.

    Raises:
        BatchError: a column has values of several types, or of none that there is.
    """
    added = pa.schema([pa.field(name, TYPES[kind]) for name, kind in adds.items()])
    try:
        if isinstance(source, ParquetSource):
            schema = pa.schema([*source.schema, *added])
        else:
            found = dict.fromkeys(_table(each, added).schema for each in rows() if each.kept)
            texts = pa.schema([(name, pa.string()) for name in source.columns or () if name not in adds])
            schema = pa.unify_schemas([*found] or [texts, added], promote_options="permissive")
        nothing = schema.empty_table()
        _read_again(nothing)
        with pq.ParquetWriter(file, schema) as writer:
            for each in rows():
                if each.kept:
                    tables = [nothing, _table(each, added)]
                    writer.write_table(pa.concat_tables(tables, promote_options="permissive"))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BatchError(f"a column has values of several types ({error}); write .jsonl instead") from None
    except RecursionError:
        raise BatchError("a column has values that stand within each other too deeply; write .jsonl instead") from None
    except pa.ArrowNotImplementedError as error:  # an object without a key
        raise BatchError(f"{error} Write .jsonl instead") from None


def _read_again(table: Any) -> None:
    """Look that what is written can be read: pyarrow writes values within each other more deeply than it reads."""
    written = BytesIO()
    pq.write_table(table, written)
    try:
        pq.ParquetFile(written)
    except (pa.ArrowInvalid, OSError):
        raise RecursionError from None


def _table(answered: Answered, added: Any) -> Any:
    """The rows with their answers."""
    if answered.chunk.table is not None:
        table = answered.chunk.table.take(pa.array(answered.kept))
    else:
        rows = [answered.chunk.rows[place] for place in answered.kept]
        names = dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
        table = pa.table({name: _column(name, rows) for name in names})
    for field in added:
        table = table.append_column(field, pa.array([cells[field.name] for cells in answered.cells], field.type))
    return table


def _column(name: str, rows: Sequence[Any]) -> Any:
    values = [row.get(name) for row in rows]
    try:
        column = pa.array(values)
        if _flags_become_numbers(column.type, values):
            raise pa.ArrowInvalid("true or false among numbers")
        return column
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        found = f"values of several types ({error})"
        if "too large" in str(error):
            found = "an integer beyond those of 64 bits with a sign"
        raise BatchError(f"column {name!r} has {found}; write .jsonl instead") from None


def _flags_become_numbers(kind: Any, values: Sequence[Any]) -> bool:
    """Whether a true or false stands where Arrow makes a 1.0 or 0.0 of it: among numbers with a point."""
    there = [value for value in values if value is not None]
    if pa.types.is_struct(kind):
        return any(_flags_become_numbers(field.type, [value.get(field.name) for value in there]) for field in kind)
    if pa.types.is_list(kind):
        return _flags_become_numbers(kind.value_type, [*chain.from_iterable(there)])
    return bool(pa.types.is_floating(kind)) and any(isinstance(value, bool) for value in there)
