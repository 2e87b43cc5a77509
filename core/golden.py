"""Golden pairs: sentences with the answers that a model gave when it was published.

They are checked at start-up and through HTTP: a runtime with other answers does not serve this model.
"""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import ManifestError, one_line
from core.files import read_regular
from core.manifest import EntailmentLabel, Label

TOLERANCE = 1e-4  # for rounding on other CPUs; far below the effect of another model
_TOLERANCE_ON = {"cpu": TOLERANCE, "cuda": 5e-4}
INTEGER_TOLERANCE = 0.05  # of a model with integer products elsewhere than on x86 with AVX2
MAX_GOLDEN_BYTES = 4 << 20


def tolerance_on(provider: str, *, has_integers: bool = False) -> float:
    """How far an answer may be from the published one where a model runs on `cpu` or `cuda`.

    CUDA's kernels sum in another order, in full float32: TensorFloat-32 is off. That was not yet measured on a GPU. On
    a CPU, kernels that are not fused move no golden answer by more than 7e-7. Integer products give the published
    answers as exactly on x86 CPUs with AVX2; on others a last digit moves one code, and later ones follow (the
    cosine of all-MiniLM-L6-v2 by .011), and a GPU opens a graph in float32 in their place.
    """
    return INTEGER_TOLERANCE if has_integers else _TOLERANCE_ON[provider]


class GoldenPair(BaseModel):
    """Two sentences, and the published answers for the model's tasks."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    a: str
    b: str
    raw_score: float | None = None
    score: float | None = None
    probabilities: dict[EntailmentLabel, float] | None = None
    classes: tuple[dict[Label, float], dict[Label, float]] | None = Field(
        None, description="of a, and of b, by itself: the probability of each label"
    )
    paraphrase: float | None = None  # the probability
    relevance: float | None = None  # likewise

    def answers(self) -> dict[str, float]:
        """All of its answers by name; `LABEL of a` is the probability of a label of a, by itself."""
        single = {name: getattr(self, name) for name in ("raw_score", "score", "paraphrase", "relevance")}
        found = {name: value for name, value in single.items() if value is not None}
        found |= {str(label): value for label, value in (self.probabilities or {}).items()}
        for side, classes in zip("ab", self.classes or ({}, {}), strict=True):
            found |= {f"{label} of {side}": value for label, value in classes.items()}
        return found


class GoldenPairs(BaseModel):
    """The content of `golden.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pairs: tuple[GoldenPair, ...]

    def save(self, path: Path) -> None:
        """Write the golden pairs into a JSON file."""
        path.write_text(self.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the golden pairs of a JSON file.

        Raises:
            ManifestError: unreadable, or not of this form.
        """
        try:
            return cls.model_validate_json(read_regular(path, MAX_GOLDEN_BYTES))
        except OSError as error:
            raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from error
        except ValidationError as error:
            raise ManifestError(f"{path}: cannot be read as golden pairs: {one_line(error)}") from error


# The texts of all published models; written by us, from no corpus.
GOLDEN_TEXTS: tuple[tuple[str, str], ...] = (
    ("A man is playing a guitar.", "Someone plays an instrument."),
    ("The cat sleeps on the sofa.", "The cat sleeps on the sofa."),
    ("The cat sleeps on the sofa.", "Interest rates rose for the third time this year."),
    ("How do I reset my password?", "I forgot my password, how can I change it?"),
    ("The museum isn't open on Mondays.", "The museum is open on Mondays."),
    ("Two dogs are running through the snow.", "There is no dog running through the snow."),
    ("caf\u00e9 \u2014 \u201cna\u00efve\u201d", 'cafe - "naive"'),
    ("\u732b\u304c\u597d\u304d", "\U0001f600 zzyzxq"),
    ("word " * 600, "word"),
)
