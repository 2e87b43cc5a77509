"""Writes rows with their new cells as JSON Lines, CSV or TSV."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from io import TextIOWrapper
from itertools import chain
from typing import Any, BinaryIO, TextIO

import numpy as np

from semblance.errors import BatchError
from semblance.tables.rows import Answered, Kind, Row, Rows, RowSource

# How cells begin that a spreadsheet may run: with a sign or its full-width form, behind what it may leave out.
_FORMULA = re.compile(r'[\s\0\ufeff"]*[=+@\uff1d\uff0b\uff0d\uff20-]')


def write_json_lines(file: BinaryIO, source: RowSource, adds: Mapping[str, Kind], rows: Rows) -> None:
    """An object a line; None for a number that JSON does not have."""
    file.writelines(map(_line, chain.from_iterable(map(merged, rows()))))


def write_csv(
    file: BinaryIO, source: RowSource, adds: Mapping[str, Kind], rows: Rows, *, quote_formulas: bool = False
) -> None:
    """The input's columns, then the new ones. A list is written as JSON, None as an empty cell."""
    _write_delimited(file, source, adds, rows, quote_formulas, delimiter=",")


def write_tsv(
    file: BinaryIO, source: RowSource, adds: Mapping[str, Kind], rows: Rows, *, quote_formulas: bool = False
) -> None:
    """The same with tabs and without quotes.

    Raises:
        BatchError: a cell has a tab or a line break, which the format cannot hold.
    """
    try:
        _write_delimited(
            file, source, adds, rows, quote_formulas, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None
        )
    except csv.Error:
        raise BatchError("a text has a tab or a line break, which .tsv cannot hold: write .csv or .jsonl") from None


class _UnixLines:
    """Ends lines with LF alone, whose writer looks for CR and LF in cells: it quotes those that have one."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line.removesuffix("\r\n") + "\n")


def csv_writer(file: TextIO, **dialect: Any) -> Any:
    """A writer of `csv` whose lines end with LF."""
    return csv.writer(_UnixLines(file), lineterminator="\r\n", **dialect)


def _write_delimited(
    file: BinaryIO, source: RowSource, adds: Mapping[str, Kind], rows: Rows, quote_formulas: bool, **dialect: Any
) -> None:
    found = dict.fromkeys(source.columns or chain.from_iterable(chain.from_iterable(map(merged, rows()))))
    columns = [name for name in found if name not in adds] + list(adds)
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv_writer(text, **dialect)
    shown = no_formula if quote_formulas else str
    writer.writerow(map(shown, columns))
    writer.writerows([shown(_cell(name, row.get(name))) for name in columns] for each in rows() for row in merged(each))
    text.detach()


def merged(answered: Answered) -> Iterator[Row]:
    """Input rows with their answers' cells."""
    for place, cells in zip(answered.kept, answered.cells, strict=True):
        row = answered.chunk.rows[place]
        assert isinstance(row, dict), "what is answered was read"
        yield {**row, **cells}


def _line(row: Row) -> bytes:
    try:
        return _json(row).encode("utf-8", "surrogatepass") + b"\n"
    except BatchError:
        for name, value in row.items():
            _cell(name, value)  # says in which column it is
        raise


def _json(value: Any) -> str:
    """A value as JSON, with null for every number that JSON does not have."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        finite = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
        return json.dumps(finite, ensure_ascii=False)
    except RecursionError:
        raise BatchError("a value has too many lists within each other") from None


def _cell(name: str, value: Any) -> str:
    value = _plain(value) if isinstance(value, date | time | Decimal) else value
    try:
        text = value if isinstance(value, str) else _json(value)
    except BatchError as error:
        raise BatchError(f"column {name!r}: {error}") from None
    return "" if text == "null" and value != text else text


def no_formula(cell: str) -> str:
    """The cell with an apostrophe before what a spreadsheet would run as a formula; a number stays one."""
    if not _FORMULA.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _plain(value: Any) -> Any:
    """Vectors, and values of Parquet for which JSON has no type."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise BatchError(f"there is a value of the type {type(value).__name__}: write .parquet instead")
