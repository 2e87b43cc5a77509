"""Which reader and which writer a file's suffix selects."""

from functools import partial
from pathlib import Path

from semblance.batch.outputs import write_csv, write_json_lines
from semblance.batch.rows import Source, Write
from semblance.batch.sources import Csv, JsonLines, Lines
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


def write_of(output: Path) -> Write:
    """What writes an output; its suffix selects it.

    Raises:
        BatchError: its suffix is unknown.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    suffix = output.suffix.lower()
    if suffix in JSON_LINES:
        return write_json_lines
    if suffix in SEPARATORS:
        return partial(write_csv, separator=SEPARATORS[suffix])
    if suffix in PARQUET:
        from semblance.batch.parquet import write_parquet

        return write_parquet
    raise BatchError(f"{output}: {KNOWN}")
