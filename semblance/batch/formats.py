"""Which reader and which store a file's suffix selects."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from semblance.batch.rows import Kind, Source
from semblance.batch.sources import Csv, JsonLines, Lines
from semblance.batch.stores import CsvStore, JsonLinesStore, Store
from semblance.errors import BatchError

JSON_LINES = (".jsonl", ".ndjson")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet",)
LINES = ".txt"
KNOWN = "expected .jsonl, .ndjson, .csv, .tsv or .parquet"


def open_source(path: Path, needed: list[str] | None = None, *, lines: str | None = None) -> Source:
    """Open the input; its suffix selects the reader. Parquet reads only the columns `needed`, by default all.

    With `lines`, the name of a column, a .txt file is read too: each line is a row with that column.

    Raises:
        BatchError: the file cannot be opened, or its suffix is unknown.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    suffix = path.suffix.lower()
    try:
        if suffix in JSON_LINES:
            return JsonLines(path)
        if suffix == LINES and lines is not None:
            return Lines(path, lines)
        if suffix in SEPARATORS:
            return Csv(path, SEPARATORS[suffix])
        if suffix in PARQUET:
            from semblance.batch.parquet import ParquetSource

            return ParquetSource(path, needed)
    except OSError as error:
        raise BatchError(f"{path}: {error.strerror or error}") from error
    raise BatchError(f"{path}: {KNOWN}{', or .txt with a text a line' if lines is not None else ''}")


def open_store(output: Path, columns: Sequence[str] | None, schema: Any, adds: Mapping[str, Kind]) -> Store:
    """The store for an output; its suffix selects the kind. Columns and schema are those of the input, if known.

    Raises:
        BatchError: its suffix is unknown.
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
