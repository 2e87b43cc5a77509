"""Files of measured figures: of runs, `analyses/figures/<recipe>-seed<n>-<storage>.json`, and of published models on
sets that stand in no mean of the report, `analyses/apart/<model>.json`."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import JsonValue

from core.manifest import Figure, Manifest
from training.records import RecordFile


class FigureFile(RecordFile):
    """Figures of one run, with the command and the settings that give them again."""

    recipe: str
    seed: int
    storage: str  # of the word table: float32 or int8
    command: str
    measured: date
    figures: tuple[Figure, ...]
    settings: dict[str, JsonValue] | None = None  # of the recipe then
    settings_from: str | None = None  # where they were read afterwards, when the measurement itself did not record them

    @property
    def stem(self) -> str:
        """The name of the file: `<recipe>-seed<n>-<storage>`."""
        return f"{self.recipe}-seed{self.seed}-{self.storage}"

    @property
    def label(self) -> str:
        """Name in the report."""
        return f"{self.recipe} seed {self.seed} {self.storage}"

    def value(self, corpus: str, split: str, metric: str) -> float | None:
        """A figure; None if it was not measured."""
        return value_of(self.figures, corpus, split, metric)


class ApartFile(RecordFile):
    """Figures of one published model, with the command that gives them again."""

    model: str
    fingerprint: str  # of the manifest that was measured
    command: str
    measured: date
    figures: tuple[Figure, ...]

    @property
    def stem(self) -> str:
        """The id of the measured model."""
        return self.model

    def value(self, corpus: str, split: str, metric: str) -> float | None:
        """A figure; None if it was not measured."""
        return value_of(self.figures, corpus, split, metric)


def recorded(folder: Path, only: str, figures: Sequence[Figure]) -> ApartFile:
    """The record of a measurement.

    Args:
        folder: of the model.
        only: the sets asked for, as the command names them.
        figures: measured.
    """
    manifest = Manifest.load(folder)
    return ApartFile(
        model=manifest.id,
        fingerprint=manifest.fingerprint,
        command=f"python -m training evaluate-model models/{manifest.id} --only {only} --record analyses/apart",
        measured=datetime.now(UTC).date(),
        figures=tuple(figures),
    )


def value_of(figures: Iterable[Figure], corpus: str, split: str, metric: str) -> float | None:
    """The value of the figure with this corpus, split and metric; None if there is none."""
    found = (each.value for each in figures if (each.corpus, each.split, each.metric) == (corpus, split, metric))
    return next(found, None)
