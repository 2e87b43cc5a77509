"""Which reader and which writer a file's suffix selects."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from semblance.errors import BatchError
from semblance.tables.delimited import Delimited, FileFormat
from semblance.tables.input_file import InputFile
from semblance.tables.json_lines import JsonLines, TextLines
from semblance.tables.outputs import write_csv, write_json_lines, write_tsv
from semblance.tables.rows import RowSource, Write, columns_of, no_column, refuse_taken

JSON_LINES = (".jsonl", ".ndjson")
TSV = ".tsv"
DELIMITED = (".csv", TSV)
AS_FOUND = FileFormat()
PARQUET = (".parquet",)
LINES = ".txt"
KNOWN = "expected .jsonl, .ndjson, .csv, .tsv or .parquet"


def open_source(
    path: Path, needed: list[str] | None = None, *, lines: str | None = None, read_as: FileFormat = AS_FOUND
) -> RowSource:
    """Open the input; its suffix selects the reader. Parquet reads only the columns `needed`, by default all.

    With `lines`, the name of a column, a .txt file is read too: each line is a row with that column.

    Raises:
        BatchError: the file cannot be opened or decoded, it is a pipe or a device, its quotes are not closed, or its
            suffix is unknown.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    suffix = path.suffix.lower()
    if read_as.delimiter is not None and suffix not in DELIMITED:
        raise BatchError(f"{path}: --delimiter is for .csv and .tsv")
    try:
        if suffix in JSON_LINES:
            return JsonLines(InputFile(path), read_as.encoding)
        if suffix == LINES and lines is not None:
            return TextLines(InputFile(path), lines, read_as.encoding)
        if suffix in DELIMITED:
            return Delimited(InputFile(path), read_as, quoting=suffix != TSV)
        if suffix in PARQUET:
            from semblance.tables.parquet import ParquetSource

            return ParquetSource(InputFile(path), needed)
    except OSError as error:
        raise BatchError(f"{path}: {error.strerror or error}") from error
    raise BatchError(f"{path}: {KNOWN}{', or .txt with a text a line' if lines is not None else ''}")


def open_column(
    path: Path, column: str, read_as: FileFormat, adds: Iterable[str] = (), *, output: Path | None, more: str = ""
) -> RowSource:
    """Open an input of which one column is read, which has none of the new columns; .txt has a text a line.

    Of Parquet that column and the column `more` are read alone, but for an output of another format.

    Raises:
        BatchError: as `open_source`; or it lacks the column, or has a new one.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    needed = [column, more] if output is None or output.suffix.lower() in PARQUET else None
    source = open_source(path, needed, lines=column, read_as=read_as)
    if (columns := columns_of(source)) and column not in columns:
        raise no_column(source, column, columns)
    refuse_taken(source, columns, adds)
    return source


def write_of(output: Path, *, quote_formulas: bool = False) -> Write:
    """What writes an output; its suffix selects it. For a spreadsheet, formulas in CSV and TSV are quoted.

    Raises:
        BatchError: its suffix is unknown.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    suffix = output.suffix.lower()
    if quote_formulas and suffix not in DELIMITED:
        raise BatchError(f"{output}: --quote-formulas is for .csv and .tsv")
    if suffix in JSON_LINES:
        return write_json_lines
    if suffix in DELIMITED:
        return partial(write_tsv if suffix == TSV else write_csv, quote_formulas=quote_formulas)
    if suffix in PARQUET:
        from semblance.tables.parquet import write_parquet

        return write_parquet
    raise BatchError(f"{output}: {KNOWN}")
