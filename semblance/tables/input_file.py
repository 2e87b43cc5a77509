"""An input file that must stay as it is while a command works with it: rows are read again when answers are written."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from semblance.errors import BatchError

Part = TypeVar("Part")
CHANGED = "the file changed while it was read; start again when nothing writes to it"


class InputFile:
    """A file as it was when it was opened.

    Attributes:
        path: where it lies.
        size: in bytes.
        sha256: the digest of its content, in hexadecimal digits.
    """

    def __init__(self, path: Path) -> None:
        """Read it once, to know its content again.

        Raises:
            BatchError: it is a pipe or a device, which can be read once only, or never ends.
            OSError: there is no such file.
        """
        self.path = path
        found = path.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):  # opening a folder says that it is one
            raise BatchError(f"{path}: a pipe or a device, which cannot be read twice: save its content as a file")
        self.size = found.st_size
        self._mark = _mark(found)
        with path.open("rb") as file:
            self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()

    def check(self) -> None:
        """Look whether it was replaced or written to; raises BatchError."""
        with suppress(OSError):  # a file that is gone has changed
            if _mark(self.path.stat()) == self._mark:
                return
        raise BatchError(f"{self.path}: {CHANGED}")

    def watched(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The parts that are read from it, each of which was read before the file changed.

        Raises:
            BatchError: it has changed.
        """
        try:
            for part in parts:
                self.check()
                yield part
        except Exception:
            self.check()  # what cannot be read any more was readable when the file was opened
            raise


def _mark(found: os.stat_result) -> tuple[int, ...]:
    # Of the two times a tool may set that of the content back, never that of the file's own record.
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
