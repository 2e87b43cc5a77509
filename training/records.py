"""Files of JSON Lines with checked fields."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from core.files import replacing


class CheckedRecord(BaseModel):
    """Checked fields, as a JSON file has them; unknown ones are refused."""

    # Instances given to a constructor are validated again, so a float field holds a float as JSON gives it back.
    model_config = ConfigDict(frozen=True, extra="forbid", revalidate_instances="always")


Record = TypeVar("Record", bound=CheckedRecord)


def read_records(path: Path, kind: type[Record]) -> list[Record]:
    """The records of a file of JSON Lines; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as lines:
        return [kind.model_validate_json(line) for line in lines]


def write_records(path: Path, records: Iterable[CheckedRecord]) -> Path:
    """Write a file of JSON Lines, one record a line; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(each.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False) for each in records]
    with replacing(path) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
