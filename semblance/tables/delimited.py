"""CSV (RFC 4180) and TSV (which has no quoting), read right or refused with the line.

The whole file is read once when it is opened: a quote that is never closed would hide the rows behind it, so it is
found before anything is asked or written.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TextIO

from semblance.errors import BatchError
from semblance.tables.decoding import encoding_of, lines_of, open_text
from semblance.tables.input_file import InputFile
from semblance.tables.rows import Chunk, Row, Unreadable, next_parts

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NAMED = re.compile(r"sep=([^\r\n])\r?\n?")  # Excel writes and reads such a first line
_QUOTED = re.compile(r'"(?:[^"]++|"")*"')
_OPEN = re.compile(r'(?:^|[,;\t|])"')  # a quoted field that goes on in the next line, where whole ones are left out
_LINES_OF_HEADER = 100
LONGEST_RECORD = 16 << 20  # characters
_QUOTE = "a quote is not closed, or has text behind it (one within a field in quotes is written twice)"


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How a text file is read; None: UTF-8, and the separator that the header has."""

    encoding: str | None = None
    delimiter: str | None = None  # of CSV and TSV

    @property
    def separator(self) -> str | None:
        """The delimiter as one character.

        Raises:
            BatchError: it is none.
        """
        named = {"tab": "\t", r"\t": "\t"}.get(self.delimiter or "", self.delimiter)
        if named is not None and (len(named) != 1 or named in '"\r\n'):
            raise BatchError(f"--delimiter {self.delimiter!r}: expected one character, or tab")
        return named


class _Record(NamedTuple):
    cells: list[str]
    position: int  # byte up to which the file was read
    line: int  # on which it begins, from 1


class Delimited:
    """A header and records; neither the header nor empty lines count as rows.

    Attributes:
        columns: those of the header.
        total: bytes of the file.
        notes: what was found out about the file, and what looks odd in it, a line each.
        decimal_comma: whether a number may be written 0,5: columns are not separated by commas.
    """

    def __init__(self, file: InputFile, read_as: FileFormat, *, quoting: bool) -> None:
        """Read the whole file once.

        Args:
            file: the file.
            read_as: its encoding and separator.
            quoting: whether a field may stand in quotes (CSV); without, a quote is an ordinary character (TSV).

        Raises:
            BatchError: another encoding, no header or a column twice, an ambiguous separator, or a quote that is not
                closed or has text behind it; names the line.
        """
        self.file, self._path, self._quoting = file, file.path, quoting
        self.total = file.size
        self.notes: list[str] = []
        self._encoding = encoding_of(file.path, read_as.encoding, self.notes.append)
        with open_text(file.path, self._encoding) as text:
            named = _NAMED.fullmatch(text.readline(LONGEST_RECORD))
        self._skipped = 1 if named else 0  # lines before the header
        self._separator = read_as.separator or ("\t" if not quoting else self._found(named and named[1]))
        self.decimal_comma = self._separator != ","
        csv.field_size_limit(sys.maxsize)  # the service limits the length of a text
        self.columns: list[str] | None = None
        self._unnamed = 0  # columns at the end that Excel wrote without a name and without content
        self._check()

    def chunks(self, start: int, size: int) -> Iterator[Chunk]:
        """Chunks of rows after the first `start`, as in `RowSource.chunks`."""
        return self.file.watched(self._chunks(start, size))

    def _chunks(self, start: int, size: int) -> Iterator[Chunk]:
        with open_text(self._path, self._encoding) as file:
            records = islice(self._records(file), start + 1, None)
            while found := next_parts(records, size):
                rows = [self._row(record) for record in found]
                yield Chunk(start, [*rows], found[-1].position, lines=[record.line for record in found])
                start += len(found)

    def _found(self, named: str | None) -> str:
        """The separator of a CSV file: of a first line `sep=;`, else the commonest one of the header."""
        found = named or ","
        if named is None:
            header = plain = ""
            with open_text(self._path, self._encoding) as file:
                for _ in range(_LINES_OF_HEADER):
                    line = file.readline(LONGEST_RECORD)
                    header = (header + line).lstrip("\r\n")
                    if plain and '"' not in line:  # the field that is open goes on
                        plain += line
                    else:
                        plain = _QUOTED.sub("", header)
                    if not line or (header and not _OPEN.search(plain)) or len(header) >= LONGEST_RECORD:
                        break
            counts = {separator: plain.count(separator) for separator in SEPARATORS}
            highest = max(counts.values())
            best = [separator for separator, count in counts.items() if count == highest]
            if highest and len(best) > 1:
                names = " and ".join(SEPARATORS[separator] for separator in best)
                raise BatchError(f"{self._path}: line 1: the header has as many {names}: give --delimiter")
            found = best[0] if highest else found
        if found != ",":
            self.notes.append(f"{self._path}: columns are separated by {SEPARATORS.get(found, repr(found))}")
        return found

    def _check(self) -> None:
        """Read every record, for what is wrong with the file and what looks odd."""
        inner = None
        unnamed = width = 0
        header: _Record | None = None
        with open_text(self._path, self._encoding) as file:
            for number, record in enumerate(self._records(file)):
                if number == 0:
                    self.columns, width = self._header(record), len(record.cells)
                    unnamed, header = _unnamed(self.columns), record
                    continue
                if unnamed and len(record.cells) == width and any(record.cells[-unnamed:]):
                    unnamed = 0  # they hold something
                if self._quoting and inner is None and self._holds_rows(record):
                    inner = record.line
        if self.columns is None or header is None:
            raise BatchError(f"{self._path}: there is no header")
        if unnamed:
            self.columns, self._unnamed = self.columns[:-unnamed], unnamed
        self._refuse_names_twice(header.line)
        if inner is not None:
            self.notes.append(
                f"{self._path}: line {inner}: a field in quotes holds line breaks and what looks like rows of the file"
            )

    def _header(self, record: _Record) -> list[str]:
        if any("\0" in name for name in record.cells):
            raise BatchError(f"{self._path}: line {record.line}: a NUL character in the header")
        return record.cells

    def _refuse_names_twice(self, line: int) -> None:
        if twice := sorted(name for name, count in Counter(self.columns).items() if count > 1):
            names = ", ".join(map(repr, twice))
            raise BatchError(f"{self._path}: line {line}: more than one column {names}")

    def _holds_rows(self, record: _Record) -> bool:
        """Whether a line within a field has as many fields as the header."""
        wanted = len(self.columns or ()) - 1
        return wanted > 0 and any(
            line.count(self._separator) == wanted
            for cell in record.cells
            if "\n" in cell or "\r" in cell
            for line in cell.splitlines()[1:]
        )

    def _records(self, file: TextIO) -> Iterator[_Record]:
        line = position = begun = size = 0
        text = ends = ""

        def lines() -> Iterator[str]:
            nonlocal line, position, size, text
            for text, position in lines_of(file):  # noqa: B007
                line += 1
                if line <= self._skipped:
                    continue
                size += len(text)
                if size > LONGEST_RECORD:
                    raise BatchError(f"{self._path}: line {begun}: a row has more than {LONGEST_RECORD:,} characters")
                yield text

        reader = csv.reader(
            lines(),
            delimiter=self._separator,
            quoting=csv.QUOTE_MINIMAL if self._quoting else csv.QUOTE_NONE,
            strict=True,
        )
        while True:
            size, begun = 0, max(line, self._skipped) + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error:
                raise BatchError(f"{self._path}: line {begun}: {_QUOTE}") from None
            if not cells:
                continue
            end = "CR" if text.endswith("\r") else "LF" if text.endswith("\n") else ""  # none: the last one
            ends = ends or end
            if end and end != ends:  # half of a row would be read as a row
                raise BatchError(
                    f"{self._path}: line {begun}: ends with {end}, the header with {ends}: a field with a line break "
                    "stands in quotes"
                )
            yield _Record(cells, position, begun)

    def _row(self, record: _Record) -> Row | Unreadable:
        cells, columns = record.cells, self.columns or ()
        if self._unnamed and len(cells) == len(columns) + self._unnamed:
            cells = cells[: len(columns)]
        if len(cells) != len(columns):
            fields = "1 field" if len(cells) == 1 else f"{len(cells)} fields"
            return Unreadable(f"{fields}, the header has {len(columns)}")
        row = dict(zip(columns, cells, strict=True))
        nul = next((name for name, cell in row.items() if "\0" in cell), None)
        return row if nul is None else Unreadable(f"a NUL character in column {nul}")


def _unnamed(columns: list[str]) -> int:
    """How many of the last columns have no name; 0 where none has one."""
    named = [place for place, name in enumerate(columns) if name]
    return len(columns) - named[-1] - 1 if named else 0
