"""An output file: it, and the file of the rows without an answer beside it, are replaced once all is written."""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from semblance.errors import BatchError
from semblance.tables.formats import PARQUET, write_of
from semblance.tables.rows import BadRow, Kind, Rows, RowSource


def errors_of(output: Path) -> Path:
    """The file of the rows without an answer."""
    return output.with_name(f"{output.name}.errors.jsonl")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of writing, such as of a full disk, name this file: the system's name none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def unfinished_of(path: Path) -> Path:
    """The file that is written beside another one, to take its place."""
    return path.with_name(f"{path.name}.unfinished")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes the place of another one, and its permissions, once all is written.

    Raises:
        OSError: the disk is full; the earlier file stays, and what was written goes.
    """
    unfinished, replaces = unfinished_of(path), path.exists()
    try:
        if replaces:
            unfinished.touch(mode=0o600)
        with naming(path), unfinished.open("wb") as file:
            if replaces:
                unfinished.chmod(stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


class OutputFile:
    """A file that a command writes."""

    def __init__(
        self,
        path: Path,
        inputs: Iterable[Path],
        *,
        overwrite: bool,
        others: Iterable[Path] = (),
        quote_formulas: bool = False,
    ) -> None:
        """Look that it may be written, before anything is asked.

        Args:
            path: its suffix selects the format.
            inputs: files that are read.
            overwrite: replace a file that is there.
            others: further files that the command writes.
            quote_formulas: in CSV and TSV, put an apostrophe before cells that a spreadsheet would run.

        Raises:
            BatchError: its suffix is unknown, it exists, it is a link, its folder is not there, or a file to write is
                a folder, or an input under whatever name.
            MissingExtra: Parquet, and pyarrow is not installed.
        """
        self._write = write_of(path, quote_formulas=quote_formulas)
        self._path = path
        there = [each for each in inputs if each.exists()]
        for each in (path, errors_of(path), unfinished_of(path), *others):
            if each.exists() and any(each.samefile(given) for given in there):
                raise BatchError(f"{each} is the input too: name another output")
            if each.is_dir():
                raise BatchError(f"{each} is a folder: name another output")
        if path.is_symlink():
            raise BatchError(f"{path} is a link: name the file that it leads to")
        if path.exists() and not overwrite:
            raise BatchError(f"{path} exists; --overwrite replaces it")
        if not path.parent.is_dir():
            raise BatchError(f"{path}: there is no folder {path.parent}")

    def check(self, source: RowSource) -> None:
        """Look that the format can hold the columns of an input, before anything is asked; raises BatchError."""
        if source.not_text and self._path.suffix.lower() not in PARQUET:
            name = source.not_text[0]
            raise BatchError(
                f"{source.file.path}: column {name!r} has bytes or lengths of time: write .parquet instead"
            )

    def write(self, source: RowSource, adds: Mapping[str, Kind], rows: Rows, bad: Iterable[tuple[int, BadRow]]) -> None:
        """Replace it and the file of rows without an answer; after a crash either the old or the new one exists.

        Args:
            source: whose columns come along.
            adds: the new columns.
            rows: gives all rows, each time that it is called.
            bad: numbers of rows without an answer, from 0, and why.

        Raises:
            BatchError: the format has nothing for a value, or the input changed while it was read.
            OSError: the disk is full.
        """
        with replacing(self._path) as file:
            try:
                self._write(file, source, adds, rows)
                file.flush()  # a full disk leaves the earlier file of errors too
            except Exception:
                source.file.check_content()  # other rows than were answered
                raise
            source.file.check_content()
            errors = errors_of(self._path)
            if lines := [_line(row, why) for row, why in bad]:
                with naming(errors):
                    errors.write_text("".join(lines), encoding="utf-8")
            elif errors.exists():
                errors.unlink()


def _line(row: int, why: BadRow) -> str:
    line = {} if why.line is None else {"line": why.line}
    return json.dumps({"row": row + 1, **line, "column": why.column, "code": why.code, "reason": why.reason}) + "\n"
