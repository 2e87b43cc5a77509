"""Records of searches: analyses/searches/<recipe>.json."""

import json
from datetime import date
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue


class TriedSettings(BaseModel):
    """One trial."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    state: str  # complete, pruned (stopped early, behind the median of the others) or failed (the loss grew endless)
    settings: dict[str, float]
    development: float | None  # the selection score of its best epoch; of a pruned one, of its last
    epochs: int
    seconds: float


class SearchRecord(BaseModel):
    """analyses/searches/<recipe>.json: every trial of a search, and the settings that did best."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: str
    command: str
    written: date
    sampler: str
    seed: int  # of the sampler and of every trial's run
    epochs: int
    pairs: int | None
    space: list[dict[str, JsonValue]]
    present: dict[str, float]  # the recipe's own settings; the first trial where they lie within the space
    trials: list[TriedSettings]
    best: int | None  # number of the best complete trial

    def save(self, folder: Path) -> Path:
        """Write `<recipe>.json`: the old file or the new one, never half of one."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.recipe}.json"
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
        return path

    @classmethod
    def load(cls, path: Path) -> "SearchRecord":
        """Read a record back."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))

    def trial(self, number: int) -> TriedSettings:
        """A trial by its number."""
        return next(each for each in self.trials if each.number == number)
