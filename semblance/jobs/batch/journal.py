"""A batch's progress, `OUTPUT.partial`: of which batch it is, then what became of each chunk's rows, a line each.

A line ends with the CRC of all that was written up to there. The first line that does not fit, since it was not written
whole, or lines were changed, lost or moved, is cut off with what follows it when the batch is resumed.
"""

import base64
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semblance.errors import BatchError
from semblance.tables.output_file import naming, open_alone
from semblance.tables.rows import BadRow, Outcome

_CRC_BYTES = 10  # with the space before it and the end of the line


class Journal:
    """Appends the outcomes of rows.

    Attributes:
        rows: number of input rows that have one.
        skipped: number of these that are bad.
        empty: number of these that are empty lines.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, overwrite: bool = False) -> None:
        """Open it, and begin it if there is none.

        Args:
            path: of the file.
            identity: of the batch, as JSON values; only the same batch is resumed.
            overwrite: begin anew where it is of another batch, or no journal.

        Raises:
            BatchError: it is of another batch, no journal, no plain file, or another run is writing it.
            OSError: the disk is full, here and when more is written.
        """
        self.path = path
        self.rows = self.skipped = self.empty = 0
        self._crc = 0
        # Where it is new, only its owner reads it.
        self._file = os.fdopen(open_alone(path, 0o600, anew=False), "r+b")
        try:
            begun = os.fstat(self._file.fileno()).st_size > 0
            try:
                if begun:
                    self._resume(identity)
            except BatchError:
                if not overwrite:
                    raise
                self._file.seek(self._file.truncate(0))
                begun = False
            if not begun:
                self._write(_line({"batch": identity}))
                self._resume(identity)
        except BaseException:
            self.close()
            raise

    def append(self, outcomes: Sequence[Outcome]) -> None:
        """Add the next rows."""
        line = _line(outcomes)[:-1]
        self._crc = zlib.crc32(line, self._crc)
        self._write(line + _ending(self._crc))
        self._count(outcomes)

    def outcomes(self) -> Iterator[Outcome]:
        """Those of all rows so far, in order."""
        with self.path.open("rb") as file:
            next(file)
            for line in file:
                yield from (BadRow(*each) if isinstance(each, list) else each for each in _read(line[:-_CRC_BYTES]))

    def close(self) -> None:
        """Close the file of the journal."""
        with naming(self.path):  # what could not be written is tried once more
            self._file.close()

    def _write(self, line: bytes) -> None:
        with naming(self.path):
            self._file.write(line)
            self._file.flush()

    def _resume(self, identity: Mapping[str, Any]) -> None:
        self._file.seek(0)
        try:
            first = self._file.readline()
            if not first.endswith(b"\n"):
                raise ValueError("it ends within a line")
            before = _read(first)["batch"]
            differences = [
                f"{name} was {json.dumps(before.get(name))}, is {json.dumps(identity.get(name))}"
                for name in sorted({*before, *identity})
                if before.get(name) != identity.get(name)
            ]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise BatchError(f"{self.path}: not of a batch ({error}); --overwrite begins again") from None
        if differences:
            raise BatchError(f"{self.path} is of another batch ({'; '.join(differences)}); --overwrite begins again")
        whole, self._crc = self._file.tell(), zlib.crc32(first)
        for line in self._file:
            content = line[:-_CRC_BYTES]
            crc = zlib.crc32(content, self._crc)
            if line[-_CRC_BYTES:] != _ending(crc):
                break
            self._count(_read(content))
            whole, self._crc = whole + len(line), crc
        self._file.seek(self._file.truncate(whole))

    def _count(self, outcomes: Sequence[Any]) -> None:
        self.rows += len(outcomes)
        self.empty += sum(each is None for each in outcomes)
        self.skipped += sum(isinstance(each, list | BadRow) for each in outcomes)


def _ending(crc: int) -> bytes:
    return b" %08x\n" % crc


def _line(content: Any) -> bytes:
    return json.dumps(content, default=_packed).encode() + b"\n"


def _packed(value: object) -> Any:
    if isinstance(value, BadRow):
        return [value.code, value.reason, value.column, value.line]
    assert isinstance(value, np.ndarray), "a vector"
    return {"float32": base64.b64encode(value.astype(np.float32).tobytes()).decode()}


def _read(line: bytes) -> Any:
    return json.loads(line, object_hook=_unpacked)


def _unpacked(found: dict[str, Any]) -> Any:
    packed = found.get("float32")
    return found if packed is None else np.frombuffer(base64.b64decode(packed), np.float32)
