"""Files of untrusted model folders: read only where they are regular, up to a size, and checked by their entries.

A models folder may contain a pipe, which blocks its reader, or a sparse file of any size.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from core.errors import ArtifactError

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileEntry(BaseModel):
    """Size and checksum of one file of the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    bytes: int = Field(ge=0)
    sha256: Sha256
    shared: bool = Field(False, description="in models/shared/, once for all models that use it")


def open_regular(path: Path, max_bytes: int | None = None) -> int:
    """A descriptor for reading a file of at most `max_bytes`; follows links, which the caller must check.

    Raises:
        OSError: missing, not a regular file, too large, or not readable; `strerror` says which.
    """
    _check_regular(os.stat(path), path, max_bytes)  # before opening, which has effects on devices
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # does not block if it is now a pipe
    try:
        _check_regular(os.fstat(descriptor), path, max_bytes)
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


def _check_regular(status: os.stat_result, path: Path, max_bytes: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file", str(path))
    if max_bytes is not None and status.st_size > max_bytes:
        raise OSError(0, f"{status.st_size:,} bytes, expected {max_bytes:,} at most", str(path))


def describe_file(path: Path, max_bytes: int | None = None) -> FileEntry:
    """Size and sha256 of a file; raises as `open_regular`."""
    with open(open_regular(path, max_bytes), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileEntry(bytes=os.fstat(file.fileno()).st_size, sha256=digest)


def check(entries: Sequence[tuple[Path, FileEntry]], known: dict[Path, FileEntry]) -> None:
    """Check files against their entries: first all sizes, then all checksums.

    Args:
        entries: each with the path of its file.
        known: what files were just found to be, which are not read again; gets these.

    Raises:
        ArtifactError: a file is missing, a link, or of another size or checksum.
    """
    for path, entry in entries:
        if path.is_symlink() or not path.is_file():
            kind = "no plain file" if path.exists() else "missing"
            kind = "a link" if path.is_symlink() else "a folder" if path.is_dir() else kind
            raise ArtifactError(f"{path}: {kind}, expected a file with sha256 {entry.sha256}")
        if (size := path.stat().st_size) != entry.bytes:
            raise ArtifactError(f"{path}: corrupted or replaced: {size} bytes, expected {entry.bytes} bytes")
    for path, entry in entries:
        try:
            found = known.get(path) or describe_file(path, entry.bytes)
        except OSError as error:
            raise ArtifactError(f"{path}: cannot be read: {error.strerror or error}") from error
        known[path] = found
        if (found.bytes, found.sha256) != (entry.bytes, entry.sha256):
            raise ArtifactError(
                f"{path}: corrupted or replaced: {found.bytes} bytes with sha256 {found.sha256}, "
                f"expected {entry.bytes} bytes with sha256 {entry.sha256}"
            )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; at the end of the block it is flushed to disk and renamed to `path`.

    A kill leaves the old file or the new one, never a part of one.

    Raises:
        OSError: the disk is full; an earlier file stays, and the error names it.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.filename is None:
            error.filename = str(path)
        raise
