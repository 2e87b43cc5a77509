"""A recipe: every setting of one run, as a typed value. It travels as JSON in the run and in the manifest."""

import json
from dataclasses import asdict, dataclass

from pydantic import JsonValue

from training.architectures import ArchitectureConfig
from training.loop import Schedule
from training.objectives.supervised import SupervisedConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.transfer import MarginConfig
from training.optimisers import OptimiserConfig


@dataclass(frozen=True)
class TableRecipe:
    """How a word table is distilled from a teacher."""

    name: str
    words: int = 50_000
    dim: int = 300
    pieces: int = 6_000
    buckets: int = 1_024
    sif: float = 1e-3


@dataclass(frozen=True)
class TeacherSentences:
    """Unlabelled sentences for regression to a teacher (`training.corpora.mixtures.unlabelled_sentences`)."""

    limit: int
    seed: int = 0


@dataclass(frozen=True)
class ParaphrasePairs:
    """Positive pairs for the margin loss (`training.corpora.mixtures.paraphrase_pairs`)."""

    limit: int | None
    seed: int = 0


@dataclass(frozen=True)
class SickPairs:
    """SICK train, pairs that also occur in its trial or test part left out."""


@dataclass(frozen=True)
class Publication:
    """How a run becomes a model folder."""

    model_id: str
    title: str
    storage: str = "int8"  # of the word table: int8 | float16 | float32
    max_tokens: int = 512
    keep_words: int | None = None  # publish only the most frequent words; the others go to the fallback


@dataclass(frozen=True)
class Recipe:
    """One experiment."""

    name: str
    reaches: str  # what it should reach, on what machine, in what time
    table: TableRecipe
    architecture: ArchitectureConfig
    data: TeacherSentences | ParaphrasePairs | SickPairs
    objective: TeacherCosineConfig | MarginConfig | SupervisedConfig
    optimiser: OptimiserConfig
    schedule: Schedule
    start: str | None = None  # the recipe whose trained encoder this one starts from
    random_start: bool = False  # word vectors drawn at random instead of taken from the table
    row_scale: float = 1.0  # word vectors are multiplied by this before training: heads want embeddings near length 1
    map_unseen: bool = False  # afterwards, move rows that training never met by a ridge map
    max_tokens: int = 128  # longer training sentences are cut
    publication: Publication | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """Plain JSON values, with the kinds of the parts named."""
        content = asdict(self)
        for part in ("data", "objective", "architecture"):
            content[part] = {"kind": type(getattr(self, part)).__name__, **content[part]}
        plain: dict[str, JsonValue] = json.loads(json.dumps(content))  # tuples become lists
        return plain
