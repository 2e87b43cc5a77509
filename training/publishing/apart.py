"""Figures of published models on sets that stand in no mean of the report: `analyses/apart/<model>.json`."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from contract.manifest import Figure, Manifest
from training.publishing.figures import value_of
from training.records import RecordFile


class ApartFile(RecordFile):
    """Figures of one published model, with the command that gives them again."""

    model: str
    fingerprint: str  # of the manifest that was measured
    command: str
    measured: date
    figures: tuple[Figure, ...]

    @property
    def stem(self) -> str:
        """The model's id, which names the file."""
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
