"""How far a batch got: a small JSON file, replaced as a whole, that never says more than is safely on disk."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semblance.errors import BatchError

VERSION = 1


@dataclass(frozen=True, slots=True)
class Files:
    """The output, and what lies beside it while a batch is under way."""

    output: Path

    @property
    def partial(self) -> Path:
        """Answered rows, appended."""
        return self._beside("partial")

    @property
    def errors(self) -> Path:
        """Skipped rows, appended; it stays, if there are any."""
        return self._beside("errors.jsonl")

    @property
    def checkpoint(self) -> Path:
        """How far it got."""
        return self._beside("checkpoint.json")

    @property
    def unfinished(self) -> Path:
        """The output while it is made from the partial one."""
        return self._beside("unfinished")

    def _beside(self, what: str) -> Path:
        return self.output.with_name(f"{self.output.name}.{what}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far it got.

    Attributes:
        identity: of the batch: input, task, columns, model; another one cannot be resumed from here.
        rows: of the input, answered or skipped.
        skipped: of these.
        partial_bytes: of the partial output; what lies behind them is not counted yet.
        errors_bytes: likewise of the skipped rows.
        complete: whether only the output is still to be made.
    """

    identity: Mapping[str, Any]
    rows: int = 0
    skipped: int = 0
    partial_bytes: int = 0
    errors_bytes: int = 0
    complete: bool = False

    def save(self, path: Path) -> None:
        """Replace the file; after a crash the old or the new one is there."""
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w", encoding="utf-8") as file:
            json.dump({"version": VERSION, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)


def load(path: Path, identity: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint of the same batch, if there is one.

    Raises:
        BatchError: it is of another batch, or is no checkpoint.
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
    """Make renames in a folder safe against a power cut."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
