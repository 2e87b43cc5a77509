"""Writes a batch's answers and its checkpoint."""

import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from time import monotonic

from semblance.batch.checkpoint import Checkpoint, Files
from semblance.batch.rows import Chunk, Row
from semblance.batch.stores import AppendOnly, Store
from semblance.batch.tasks import BadRow


@dataclass(slots=True)
class Answered:
    """A chunk's answers by position, and the reason for every row without one."""

    chunk: Chunk
    cells: dict[int, Row]
    bad: dict[int, BadRow]


class Writer:
    """Appends to the partial output and the errors file, and saves the checkpoint."""

    def __init__(self, files: Files, begun: Checkpoint, store: Store, prefix: str, every: float) -> None:
        """Truncate both files to the checkpoint.

        Raises:
            BatchError: another batch is writing them, or they are shorter than the checkpoint says.
        """
        self.done = begun
        self._files, self._store, self._prefix, self._every = files, store, prefix, every
        with ExitStack() as opened:
            self._partial = opened.enter_context(closing(AppendOnly(files.partial, begun.partial_bytes)))
            self._errors = opened.enter_context(closing(AppendOnly(files.errors, begun.errors_bytes)))
            self._opened = opened.pop_all()
        self._saved = -math.inf

    def write(self, answered: Answered) -> None:
        """Append a chunk's rows; save the checkpoint every `every` seconds."""
        chunk, kept = answered.chunk, sorted(answered.cells)
        cells = [{f"{self._prefix}{name}": cell for name, cell in answered.cells[place].items()} for place in kept]
        self._partial.append(self._store.pack(chunk, kept, cells))
        self._errors.append(b"".join(_error_lines(answered)))
        self.done = replace(
            self.done,
            rows=chunk.before + len(chunk.rows),
            skipped=self.done.skipped + len(answered.bad),
            partial_bytes=self._partial.size,
            errors_bytes=self._errors.size,
        )
        if monotonic() - self._saved >= self._every:
            self.save()

    def save(self, *, complete: bool = False) -> None:
        """Sync both files, then write the checkpoint."""
        self._partial.sync()
        self._errors.sync()
        replace(self.done, complete=complete).save(self._files.checkpoint)
        self._saved = monotonic()

    def close(self) -> None:
        """Close both files."""
        self._opened.close()


def _error_lines(answered: Answered) -> Iterator[bytes]:
    for place, bad in sorted(answered.bad.items()):
        line = {
            "row": answered.chunk.before + place + 1,
            "column": bad.column,
            "code": bad.code,
            "reason": bad.reason,
        }
        yield json.dumps(line).encode() + b"\n"
