"""Reads files of untrusted model folders: only regular files, and only up to a size.

A models folder may contain a pipe, which blocks its reader, or a sparse file of any size.
"""

import os
import stat
from pathlib import Path


def open_regular(path: Path, max_bytes: int | None = None) -> int:
    """A descriptor for reading a file of at most `max_bytes`; follows links, which the caller must check.

    Raises:
        OSError: missing, not a regular file, too large, or not readable; `strerror` says which.
    """
    _check(os.stat(path), path, max_bytes)  # before opening, which has effects on devices
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # does not block if it is now a pipe
    try:
        _check(os.fstat(descriptor), path, max_bytes)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The content of a file; raises as `open_regular`, also if it grows beyond the limit."""
    with open(open_regular(path, max_bytes), "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(0, f"more than {max_bytes:,} bytes", str(path))
    return content


def _check(status: os.stat_result, path: Path, max_bytes: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file", str(path))
    if max_bytes is not None and status.st_size > max_bytes:
        raise OSError(0, f"{status.st_size:,} bytes, expected {max_bytes:,} at most", str(path))
