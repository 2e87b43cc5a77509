"""Golden pairs: sentences with the answers a model gave when it was published.

They are asked again at start-up and through HTTP; a runtime that answers otherwise is not serving this model.
"""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from contract.errors import ManifestError
from contract.manifest import EntailmentLabel, one_line

TOLERANCE = 1e-4  # other CPUs and providers may round differently; far below any real change of a model


class GoldenPair(BaseModel):
    """Two sentences and the published answers of each task the model has."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    a: str
    b: str
    raw_score: float | None = None
    score: float | None = None
    probabilities: dict[EntailmentLabel, float] | None = None


class GoldenPairs(BaseModel):
    """The content of `golden.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pairs: tuple[GoldenPair, ...]

    def save(self, path: Path) -> None:
        """Write the file."""
        path.write_text(self.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            ManifestError: unreadable, or not of this form.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from error
        except ValidationError as error:
            raise ManifestError(f"{path}: cannot be read as golden pairs: {one_line(error)}") from error
