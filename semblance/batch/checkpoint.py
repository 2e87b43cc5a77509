"""A batch's progress: a small JSON file, replaced atomically, that never counts more than is on disk."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semblance.errors import BatchError

VERSION = 1


class Files:
    """Paths of the output and of the files beside it while a batch runs."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.partial = self._beside("partial")  # answered rows, appended
        self.errors = self._beside("errors.jsonl")  # skipped rows, appended; kept at the end, if there are any
        self.checkpoint = self._beside("checkpoint.json")
        self.unfinished = self._beside("unfinished")  # the output while it is written from the partial one

    def _beside(self, what: str) -> Path:
        return self.output.with_name(f"{self.output.name}.{what}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far it got.

    Attributes:
        identity: of the batch: input, task, columns, model; only the same batch can be resumed from this.
        rows: number of input rows that are answered or skipped.
        skipped: number of these that are skipped.
        partial_bytes: valid length of the partial output.
        errors_bytes: valid length of the file of skipped rows.
        complete: whether all rows are done, and only the output is left to write.
    """

    identity: Mapping[str, Any]
    rows: int = 0
    skipped: int = 0
    partial_bytes: int = 0
    errors_bytes: int = 0
    complete: bool = False

    def save(self, path: Path) -> None:
        """Replace the file atomically: after a crash either the old or the new one exists."""
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w", encoding="utf-8") as file:
            json.dump({"version": VERSION, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)


def load(path: Path, identity: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint of this batch; None if there is none.

    Raises:
        BatchError: the file is of another batch, or no checkpoint.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("version") != VERSION:
            raise ValueError("of another version")
        checkpoint = Checkpoint(**found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise BatchError(f"{path}: not a checkpoint ({error}); --overwrite begins again") from None
    if differences := list(_differences(checkpoint.identity, identity)):
        raise BatchError(f"{path} is of another batch ({'; '.join(differences)}); --overwrite begins again")
    return checkpoint


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            yield f"{name} was {json.dumps(then.get(name))}, is {json.dumps(now.get(name))}"


def sync_folder(folder: Path) -> None:
    """Flush a folder's renames to disk."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
