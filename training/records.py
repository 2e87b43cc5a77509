"""Files that are replaced whole, and JSON files with checked fields."""

import json
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; at the end of the block it is flushed to disk and renamed to `path`.

    A kill leaves the old file or the new one, never a part of one.
    """
    partial = path.with_name(f".{path.name}.partial")
    yield partial
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


class CheckedRecord(BaseModel):
    """Checked fields, as a JSON file has them; unknown ones are refused."""

    # Instances given to a constructor are validated again, so a float field holds a float as JSON gives it back.
    model_config = ConfigDict(frozen=True, extra="forbid", revalidate_instances="always")


class RecordFile(CheckedRecord):
    """A record that is a JSON file of its own."""

    @property
    @abstractmethod
    def stem(self) -> str:
        """Name of the file without its suffix."""

    def save(self, folder: Path) -> Path:
        """Write `<folder>/<stem>.json`; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.stem}.json"
        with replacing(path) as partial:
            partial.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))
