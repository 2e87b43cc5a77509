"""An output file: it, and the file of the rows without an answer beside it, are replaced once all is written."""

import filecmp
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from semblance.errors import BatchError
from semblance.tables.formats import PARQUET, write_of
from semblance.tables.rows import Answered, BadRow, Kind, Row, Rows, RowSource


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


def refuse_special(path: Path) -> None:
    """Refuse a path to write to that is there and no plain file.

    Raises:
        BatchError: it is a folder, a link, a pipe or a device.
    """
    if path.is_dir():
        raise BatchError(f"{path} is a folder: name another output")
    if path.is_symlink():
        raise BatchError(f"{path} is a link: name another output")
    if path.exists() and not path.is_file():
        raise BatchError(f"{path} is a pipe or a device: name another output")


def open_alone(path: Path, mode: int = 0o666, *, anew: bool = True) -> int:
    """A descriptor of a file that nobody else writes until it is closed.

    Args:
        path: of the file; it is made if there is none.
        mode: its permissions then, but for those that the umask takes.
        anew: without what it has.

    Raises:
        BatchError: it is no plain file, or another run is writing it.
        OSError: it cannot be opened.
    """
    refuse_special(path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), mode)
    try:
        with naming(path):
            _lock(handle, path)
            if anew:
                os.ftruncate(handle, 0)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _lock(handle: int, path: Path) -> None:
    if os.name != "posix":
        return
    import fcntl

    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), path.stat()):  # else its writer has just removed or renamed it
            return
    raise BatchError(f"{path}: another run is writing it")


def write_alone(path: Path, text: str) -> None:
    """Write a text in UTF-8; raises as `open_alone`, and OSError on a full disk."""
    with naming(path), open(open_alone(path), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def unfinished_of(path: Path) -> Path:
    """The file that is written beside another one, to take its place."""
    return path.with_name(f"{path.name}.unfinished")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes the place of another one, and its permissions, once all is written.

    Raises:
        BatchError: as `open_alone`, of either file.
        OSError: the disk is full; the earlier file stays, and what was written goes.
    """
    refuse_special(path)
    unfinished, replaces = unfinished_of(path), path.exists()
    handle = open_alone(unfinished, 0o600 if replaces else 0o666)
    try:
        with naming(path), open(handle, "wb") as file:
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
        resumed: bool = False,
        others: Iterable[Path] = (),
        quote_formulas: bool = False,
    ) -> None:
        """Look that it may be written, before anything is asked.

        Args:
            path: its suffix selects the format.
            inputs: files that are read.
            overwrite: replace a file that is there.
            resumed: a file that is there may be what will be written; `write` refuses another one.
            others: further files that the command writes.
            quote_formulas: in CSV and TSV, put an apostrophe before cells that a spreadsheet would run.

        Raises:
            BatchError: its suffix is unknown, it exists, its folder is not there or read-only, or a file to write is no
                plain file, or an input under whatever name.
            MissingExtra: Parquet, and pyarrow is not installed.
        """
        self._write = write_of(path, quote_formulas=quote_formulas)
        self._path = path
        there = [each for each in inputs if each.exists()]
        for each in (path, errors_of(path), unfinished_of(path), unfinished_of(errors_of(path)), *others):
            if each.exists() and any(each.samefile(given) for given in there):
                raise BatchError(f"{each} is the input too: name another output")
            refuse_special(each)
        self._overwrite = overwrite
        if not resumed:
            self.refuse_earlier()
        if not path.parent.is_dir():
            raise BatchError(f"{path}: there is no folder {path.parent}")
        try:
            with TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise BatchError(f"{path}: no file can be made in {path.parent.resolve()}: {error.strerror}") from error

    def refuse_earlier(self) -> None:
        """Look that no file is there which may not be replaced; raises BatchError."""
        for each in (self._path, errors_of(self._path)):
            if each.exists() and not self._overwrite:
                raise BatchError(f"{each} exists; --overwrite replaces it")

    def check(self, source: RowSource, item: Callable[[Row], object], adds: Mapping[str, Kind]) -> None:
        """Look that the format can hold the rows of an input, before anything is asked: write them to nowhere.

        Args:
            source: the rows.
            item: what is asked of a row; raises BadRow of one that gets no answer, and is not written.
            adds: the new columns.

        Raises:
            BatchError: it cannot.
        """
        if {self._path.suffix.lower(), source.file.path.suffix.lower()} <= {*PARQUET}:
            return  # every column keeps its type

        def rows() -> Iterator[Answered]:
            for chunk in source.chunks(0, 1000):
                kept = [place for place, row in enumerate(chunk.rows) if isinstance(row, dict) and _fits(row, item)]
                yield Answered(replace(chunk, table=None), kept, [dict.fromkeys(adds)] * len(kept))

        with open(os.devnull, "wb") as nowhere:
            self._write(nowhere, source, adds, rows)

    def write(self, source: RowSource, adds: Mapping[str, Kind], rows: Rows, bad: Iterable[tuple[int, BadRow]]) -> None:
        """Replace it and the file of rows without an answer; after a crash either the old or the new one exists.

        Args:
            source: whose columns come along.
            adds: the new columns.
            rows: gives all rows, each time that it is called.
            bad: numbers of rows without an answer, from 0, and why.

        Raises:
            BatchError: the format has nothing for a value, the input changed while it was read, another run is
                writing the output, or a file that may not be replaced is there, and is not what is written.
            OSError: the disk is full.
        """
        with replacing(self._path) as file:
            try:
                self._write(file, source, adds, rows)
                file.flush()  # a full disk leaves the earlier file of errors too
            except Exception:
                source.file.check()  # other rows than were answered
                raise
            source.file.check()
            errors, lines = errors_of(self._path), "".join(_line(row, why) for row, why in bad)
            if (self._path.exists() and not filecmp.cmp(unfinished_of(self._path), self._path, shallow=False)) or (
                errors.exists() and errors.read_bytes() != lines.encode()
            ):
                self.refuse_earlier()
            if lines:
                with replacing(errors) as beside:
                    beside.write(lines.encode())
            elif errors.exists():
                errors.unlink()


def _fits(row: Row, item: Callable[[Row], object]) -> bool:
    with suppress(BadRow):
        item(row)
        return True
    return False


def _line(row: int, why: BadRow) -> str:
    line = {} if why.line is None else {"line": why.line}
    return json.dumps({"row": row + 1, **line, "column": why.column, "code": why.code, "reason": why.reason}) + "\n"
