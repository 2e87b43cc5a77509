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
from semblance.tables.rows import Chunk, Row, Unreadable

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NAMED = re.compile(r"sep=(.)\r?\n?")  # Excel writes and reads such a first line
LONGEST_RECORD = 16 << 20  # characters


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
        self._encoding = encoding_of(file.path, read_as.encoding)
        self._skipped = 0  # lines before the header
        self._separator = read_as.separator or ("\t" if not quoting else self._found())
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
            while found := list(islice(records, size)):
                rows = [self._row(record) for record in found]
                yield Chunk(start, [*rows], found[-1].position, lines=[record.line for record in found])
                start += len(found)

    def _found(self) -> str:
        """The separator of a CSV file: of a first line `sep=;`, else the commonest one of the header."""
        with open_text(self._path, self._encoding) as file:
            first = file.readline(LONGEST_RECORD)
        if named := _NAMED.fullmatch(first):
            self._skipped, found = 1, named[1]
        else:
            plain = re.sub(r'"(?:[^"]|"")*"', "", first)
            counts = {separator: plain.count(separator) for separator in SEPARATORS}
            highest = max(counts.values())
            best = [separator for separator, count in counts.items() if count == highest]
            if highest and len(best) > 1:
                names = " and ".join(SEPARATORS[separator] for separator in best)
                raise BatchError(f"{self._path}: line 1: the header has as many {names}: give --delimiter")
            found = best[0] if highest else ","
        if found != ",":
            self.notes.append(f"{self._path}: columns are separated by {SEPARATORS.get(found, repr(found))}")
        return found

    def _check(self) -> None:
        """Read every record, for what is wrong with the file and what looks odd."""
        quoted = inner = None
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
                if not self._quoting and quoted is None:
                    if any(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in record.cells):
                        quoted = record.line
                elif self._quoting and inner is None and self._holds_rows(record):
                    inner = record.line
        if self.columns is None or header is None:
            raise BatchError(f"{self._path}: there is no header")
        if unnamed:
            self.columns, self._unnamed = self.columns[:-unnamed], unnamed
        self._refuse_names_twice(header.line)
        if quoted is not None:
            self.notes.append(
                f"{self._path}: line {quoted}: a field begins and ends with a quote; .tsv has no quoting, so it is kept"
            )
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
        line = position = begun = 0
        held: list[str] = []  # lines of the record that is being read
        size = 0

        def lines() -> Iterator[str]:
            nonlocal line, position, size
            for text, position in lines_of(file):  # noqa: B007
                line += 1
                if line <= self._skipped:
                    continue
                held.append(text)
                size += len(text)
                if size > LONGEST_RECORD:
                    raise BatchError(self._fault(held, begun, f"a row has more than {LONGEST_RECORD:,} characters"))
                yield text

        reader = csv.reader(
            lines(),
            delimiter=self._separator,
            quoting=csv.QUOTE_MINIMAL if self._quoting else csv.QUOTE_NONE,
            strict=True,
        )
        while True:
            held.clear()
            size, begun = 0, max(line, self._skipped) + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise BatchError(self._fault(held, begun, str(error))) from None
            if cells:
                yield _Record(cells, position, begun)

    def _fault(self, held: list[str], begun: int, otherwise: str) -> str:
        """What is wrong with the record of these lines, the first of which has the number `begun`."""
        opened = open_quote("".join(held), self._separator) if self._quoting else None
        if opened is None:
            return f"{self._path}: line {begun}: {otherwise}"
        columns = self.columns or ()
        name = columns[opened.column] if opened.column < len(columns) else str(opened.column + 1)
        line = begun + opened.line
        if opened.text_after is None:
            return f"{self._path}: line {line}: the quote that opens column {name} is not closed"
        if opened.text_after > opened.line:
            return (
                f"{self._path}: line {line}: the quote that opens column {name} is not closed: the next one, in line "
                f"{begun + opened.text_after}, has text behind it"
            )
        return (
            f"{self._path}: line {line}: column {name} has text behind its closing quote; "
            "a quote within a field in quotes is written twice"
        )

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


class OpenQuote(NamedTuple):
    """A field in quotes that ends wrongly; places count from 0."""

    column: int
    line: int  # of the quote that opens it
    text_after: int | None  # line on which text stands behind the next quote; None: there is no other quote


def open_quote(text: str, separator: str) -> OpenQuote | None:
    """The first field in quotes of a text that is not closed or has text behind its closing quote."""
    place = column = line = 0
    while place < len(text):
        if text[place] == '"':
            opened, begun = place, line
            end = text.find('"', place + 1)
            while end >= 0 and text[end + 1 : end + 2] == '"':
                end = text.find('"', end + 2)
            if end < 0:
                return OpenQuote(column, begun, None)
            line += len(re.findall(r"\r\n|\r|\n", text[opened:end]))
            place = end + 1
            if place < len(text) and text[place] not in (separator, "\r", "\n"):
                return OpenQuote(column, begun, line)
        else:
            found = re.compile(rf"[{re.escape(separator)}\r\n]").search(text, place)
            place = found.start() if found else len(text)
        if place < len(text) and text[place] == separator:
            column, place = column + 1, place + 1
            if place == len(text):
                return None
        elif place < len(text):
            end_of_line = re.compile(r"\r\n|\r|\n").match(text, place)
            assert end_of_line is not None
            column, line, place = 0, line + 1, end_of_line.end()
    return None
