"""Opening corpus files: UTF-8, one record per line, tab separated, no quoting, plain or gzip.

A double quote inside a sentence is an ordinary character, and only a line feed ends a record. `csv` and text-mode
iteration are not used: ``str.splitlines`` also splits at characters such as U+2028, which occur inside sentences.
"""

import gzip
import math
import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.data import catalogue
from training.data.pairs import Pair
from training.errors import UserError

_GZIP_MAGIC = b"\x1f\x8b"


class CorpusError(UserError):
    """A corpus file is missing, malformed, or not the published one. The message is one line for a person."""


class CorpusMissing(CorpusError):
    """The file is not in the data folder at all."""


def data_dir() -> Path:
    """The folder that holds the corpora: SEMBLANCE_DATA, or ``data`` under the current folder. Read at every call."""
    return Path(os.environ.get("SEMBLANCE_DATA") or "data")


@dataclass(frozen=True, slots=True)
class FileRow:
    """One record of a tab-separated file: cells by column name, with file and line for error messages."""

    file: str
    line: int
    columns: dict[str, int]
    cells: list[str]

    def error(self, expected: str, came: object) -> CorpusError:
        """An error that names this line, for the caller to raise."""
        return CorpusError(f"{self.file}, line {self.line}: expected {expected}, got {came!r}")

    def raw(self, column: str) -> str:
        """The cell unchanged, possibly empty."""
        return self.cells[self.columns[column]]

    def text(self, column: str) -> str:
        """The cell without surrounding white space; raises `CorpusError` when nothing is left."""
        value = self.cells[self.columns[column]].strip()
        if not value:
            raise self.error(f"text in column {column}", self.cells[self.columns[column]])
        return value

    def number(self, column: str, low: float, high: float) -> float:
        """The cell as a number in [low, high]; raises `CorpusError` otherwise (NaN included)."""
        cell = self.cells[self.columns[column]]
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise self.error(f"a number from {low:g} to {high:g} in column {column}", cell)
        return value

    def choice(self, column: str, allowed: Collection[str]) -> str:
        """The cell as one of ``allowed``; raises `CorpusError` otherwise."""
        cell = self.cells[self.columns[column]]
        if cell not in allowed:
            raise self.error(f"one of {', '.join(sorted(allowed))} in column {column}", cell)
        return cell


def one_of(name: str, value: str, allowed: Collection[str]) -> str:
    """Check an argument of a reader (a split, a set); raises ValueError naming what there is."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
    return value


def locate(corpus: str, relative: str) -> Path:
    """The file of ``corpus`` at ``relative`` in the data folder; raises `CorpusMissing` when it is not there."""
    path = data_dir() / relative
    if not path.is_file():
        raise CorpusMissing(f"{corpus}: {path} not found; `python -m training data` says where each corpus comes from")
    return path


def numbered_lines(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its line feed) of a plain or gzip UTF-8 file.

    Raises `CorpusError` (naming ``name``) for bytes that are not UTF-8 and for damaged gzip data.
    """
    number = 0
    with path.open("rb") as probe:
        packed = probe.read(2) == _GZIP_MAGIC
    with gzip.open(path, "rb") if packed else path.open("rb") as stream:
        try:
            for number, raw in enumerate(stream, 1):
                yield number, raw.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            came = error.object[error.start : error.end]
            raise CorpusError(f"{name}, line {number}: expected UTF-8 text, got bytes {came!r}") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CorpusError(f"{name}, after line {number}: damaged gzip data ({error})") from error


def read_lines(corpus: str, relative: str) -> list[tuple[int, str]]:
    """All (number, line) of a file without a header, its number of lines checked against `catalogue.PUBLISHED`."""
    lines = list(numbered_lines(locate(corpus, relative), relative))
    _check_rows(relative, len(lines))
    return lines


def read_rows(corpus: str, relative: str, header: Sequence[str]) -> list[FileRow]:
    """All records of a tab-separated file with the given header line.

    Raises `CorpusError` for another header, another number of columns in any line, and a number of rows other than the
    one in `catalogue.PUBLISHED`.
    """
    rows = read_table(locate(corpus, relative), relative, header)
    _check_rows(relative, len(rows))
    return rows


def read_table(path: Path, relative: str, header: Sequence[str]) -> list[FileRow]:
    """All records of a tab-separated file with the given header line; errors name it `relative`.

    Raises `CorpusError` for another header, and another number of columns in any line.
    """
    columns = {name: index for index, name in enumerate(header)}
    rows: list[FileRow] = []
    empty = True
    for number, line in numbered_lines(path, relative):
        cells = line.split("\t")
        if number == 1:
            empty = False
            if cells != list(header):
                raise CorpusError(f"{relative}, line 1: expected the header {' | '.join(header)}, got {line[:120]!r}")
            continue
        if len(cells) != len(header):
            raise CorpusError(
                f"{relative}, line {number}: expected {len(header)} tab-separated columns, "
                f"got {len(cells)}: {line[:80]!r}"
            )
        rows.append(FileRow(relative, number, columns, cells))
    if empty:
        raise CorpusError(f"{relative}, line 1: expected the header {' | '.join(header)}, got an empty file")
    return rows


def checked(relative: str, pairs: list[Pair]) -> list[Pair]:
    """``pairs`` unchanged, after checking the published numbers per label and of groups.

    Raises `CorpusError` when they differ.
    """
    published = catalogue.PUBLISHED.get(relative)
    if published is None:
        return pairs
    if published.labels:
        found = Counter(pair.label for pair in pairs)
        if found != Counter(published.labels):
            raise CorpusError(f"{relative}: expected labels {_listed(published.labels)}, got {_listed(found)}")
    if published.groups is not None:
        groups = len({pair.group for pair in pairs})
        if groups != published.groups:
            raise CorpusError(f"{relative}: expected {published.groups} groups (questions), got {groups}")
    return pairs


def _check_rows(relative: str, rows: int) -> None:
    published = catalogue.PUBLISHED.get(relative)
    if published is not None and rows != published.rows:
        raise CorpusError(f"{relative}: expected the published {published.rows} rows, got {rows}")


def _listed(labels: Mapping[Any, int]) -> str:
    return ", ".join(f"{label} {count}" for label, count in sorted(labels.items(), key=str))
