"""Measured figures, one JSON line each: of runs, and of published models on sets that stand in no mean of the report.

A run's line lies in `papers/figures/<file of its recipe>.jsonl`, a published model's in `papers/apart.jsonl`.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import JsonValue

from core.manifest import Figure, Manifest
from training.recipes import file_of
from training.records import CheckedRecord, read_records, write_records

FIGURES = Path("papers/figures")
APART = Path("papers/apart.jsonl")
REPEATS = Path("papers/repeats.jsonl")  # runs that were trained once more, beside what is recorded


class TrainingSummary(CheckedRecord):
    """Result of a run, from its `result.json`."""

    dev: float  # the selection score of the epoch kept
    best_epoch: int
    epochs: int
    seconds: float


class RunFigures(CheckedRecord):
    """Figures of one run, with the command and the settings that give them again."""

    recipe: str
    seed: int
    storage: str  # of the word table: float32 or int8
    command: str
    measured: date
    training: TrainingSummary | None = None  # None: of a run that was made before this was recorded
    curve: tuple[float, ...] = ()  # selection score of the untrained model, then of each epoch; none in older lines
    figures: tuple[Figure, ...]
    settings: dict[str, JsonValue] | None = None  # of the recipe then
    settings_from: str | None = None  # where they were read afterwards, when the measurement itself did not record them

    @property
    def key(self) -> tuple[str, int, str]:
        """What is measured: recipe, seed, storage."""
        return self.recipe, self.seed, self.storage

    @property
    def label(self) -> str:
        """Name in the report."""
        return f"{self.recipe} seed {self.seed} {self.storage}"

    def value(self, corpus: str, split: str, metric: str) -> float | None:
        """A figure; None if it was not measured."""
        return value_of(self.figures, corpus, split, metric)


class ApartFigures(CheckedRecord):
    """Figures of one published model, with the command that gives them again."""

    model: str
    fingerprint: str  # of the manifest that was measured
    command: str
    measured: date
    figures: tuple[Figure, ...]

    def value(self, corpus: str, split: str, metric: str) -> float | None:
        """A figure; None if it was not measured."""
        return value_of(self.figures, corpus, split, metric)


def read_figures(folder: Path) -> list[RunFigures]:
    """All runs that were measured, by recipe, seed and storage."""
    found = [each for path in folder.glob("*.jsonl") for each in read_records(path, RunFigures)]
    return sorted(found, key=lambda each: f"{each.recipe}-seed{each.seed}-{each.storage}")


def record_run(folder: Path, measured: RunFigures) -> Path:
    """Write a run's line, in place of an older one of the same run; returns the file."""
    return add_run(folder / f"{file_of(measured.recipe)}.jsonl", measured)


def add_run(path: Path, measured: RunFigures) -> Path:
    """Write a run's line into a file, in place of an older one of the same run; returns the file."""
    runs = [each for each in read_records(path, RunFigures) if each.key != measured.key] + [measured]
    runs.sort(key=lambda each: each.key)
    return write_records(path, runs)


def record_apart(path: Path, folder: Path, only: str, figures: Sequence[Figure]) -> Path:
    """Write a published model's line, in place of its older one.

    Args:
        path: the file of such lines.
        folder: of the model.
        only: the sets asked for, as the command names them.
        figures: measured.
    """
    manifest = Manifest.load(folder)
    measured = ApartFigures(
        model=manifest.id,
        fingerprint=manifest.fingerprint,
        command=f"python -m training evaluate-model models/{manifest.id} --only {only} --record {APART}",
        measured=datetime.now(UTC).date(),
        figures=tuple(figures),
    )
    models = [each for each in read_records(path, ApartFigures) if each.model != manifest.id] + [measured]
    models.sort(key=lambda each: each.model)
    return write_records(path, models)


def value_of(figures: Iterable[Figure], corpus: str, split: str, metric: str) -> float | None:
    """The value of the figure with this corpus, split and metric; None if there is none."""
    found = (each.value for each in figures if (each.corpus, each.split, each.metric) == (corpus, split, metric))
    return next(found, None)
