"""A recipe: every setting of one run, as a typed value. It travels as JSON in the run and in the manifest."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from typing import Any, Literal

from pydantic import JsonValue

from training.data.words.storage import Storage
from training.models import ArchitectureConfig, HeadsConfig, InteractionConfig
from training.models.kinds import Precision
from training.objectives.manhattan import ManhattanConfig
from training.objectives.pairwise import PairwiseConfig
from training.objectives.sentiment import SentimentConfig
from training.objectives.supervised import SupervisedConfig
from training.objectives.tasks import TasksConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.transfer import MarginConfig
from training.recipes.sources.source import DataSource
from training.recipes.sources.tables import PretrainedEncoder, PublishedTable, ServedTable, TableRecipe


@dataclass(frozen=True)
class OptimiserConfig:
    """How parameters move; word vectors have a learning rate of their own, as in the papers."""

    name: Literal["adam", "adamw", "adagrad", "rmsprop"] = "adam"
    learning_rate: float = 1e-3
    embedding_learning_rate: float | None = 1e-3  # None: the words stay frozen
    clip: float | None = None  # largest global gradient norm
    heads_learning_rate: float | None = None  # of the module `heads`; None: as the rest of the composition
    # Of a transformer's layers, each that much slower than the one above it, which has the learning rate (J. Howard,
    # S. Ruder, "Universal Language Model Fine-tuning for Text Classification", ACL 2018).
    layer_decay: float = 1.0
    heads_only: bool = False  # the whole encoder, words and composition, stays frozen: its vectors are mere features


WARM_UP = 0.06  # of all steps


@dataclass(frozen=True)
class Schedule:
    """How long to train and how to choose the epoch that is kept."""

    epochs: int
    batch_size: int
    patience: int | None = None  # epochs without a better development score before stopping
    # Of the learning rates: to 0 at the end of the last epoch; `warm` first rises over `WARM_UP` of all steps.
    decay: Literal["none", "linear", "warm"] = "none"
    checkpoint_seconds: float = 60.0  # also inside an epoch: what a kill can cost
    keep: Literal["best", "last"] = "best"  # the epoch of the best development score, or the last one


@dataclass(frozen=True)
class Publication:
    """How a run becomes a model folder."""

    model_id: str
    title: str
    storage: Storage = "int8"  # of the word table
    max_tokens: int = 512
    keep_words: int | None = None  # publish only the most frequent words; the others go to the fallback
    blend: bool = False  # of a cross-encoder: similarity and relevance with the cosine of the encoder it started from


@dataclass(frozen=True)
class Recipe:
    """All settings of one experiment."""

    name: str
    reaches: str  # what it should reach, on what machine, in what time
    table: TableRecipe | PublishedTable | ServedTable | PretrainedEncoder
    architecture: ArchitectureConfig | InteractionConfig | HeadsConfig
    data: DataSource[Any, Any]
    objective: (
        TeacherCosineConfig
        | MarginConfig
        | SupervisedConfig
        | SentimentConfig
        | ManhattanConfig
        | PairwiseConfig
        | TasksConfig
    )
    optimiser: OptimiserConfig
    schedule: Schedule
    start: str | None = None  # the recipe whose trained encoder (of another architecture: words) this one starts from
    start_seed: int | None = None  # of that run; None: the seed of this one
    # Of the way from the start's weights to the trained ones, how much is kept: less forgets less (M. Wortsman et al.,
    # "Robust fine-tuning of zero-shot models", CVPR 2022).
    learnt_share: float = 1.0
    # Of what is kept: a recipe whose own is kept, and its share of the mean.
    kept_toward: tuple[str, float] | None = None
    random_start: bool = False  # word vectors drawn at random instead of taken from the table
    row_scale: float = 1.0  # word vectors are multiplied by this before training: gates and heads want long ones
    map_unseen: bool = False  # afterwards, move rows that training never met by a ridge map
    precision: Precision = "float32"  # of matrix products in training: bfloat16 is 2.4x as fast for recurrent encoders
    max_tokens: int = 128  # longer training sentences are cut
    publication: Publication | None = None

    @property
    def calibrated_on(self) -> str | None:
        """The part of its data on which the score is calibrated; None: no part of it."""
        return self.objective.calibrate_on if isinstance(self.objective, ManhattanConfig) else None

    def as_json(self) -> dict[str, JsonValue]:
        """Plain JSON values, with the kinds of the parts named."""
        content = asdict(self)
        for part in ("data", "objective", "architecture"):
            content[part] = {"kind": type(getattr(self, part)).__name__, **content[part]}
        plain: dict[str, JsonValue] = json.loads(json.dumps(content))  # tuples become lists
        return plain


def differences(recorded: dict[str, JsonValue], recipe: Recipe) -> list[str]:
    """The settings that a recipe has otherwise now than when they were recorded.

    What it should reach, and how it is published, may change. A setting unknown then was at its default.
    """
    then, now = with_defaults(recorded, recipe), recipe.as_json()
    return sorted(key for key in {*then, *now} - {"reaches", "publication"} if then.get(key) != now.get(key))


# Settings that recipes have no more, with the values at which today's code does the same as that of then.
REMOVED_SETTINGS: Mapping[str, JsonValue] = {
    **{"layers": 1, "activation": "tanh", "hidden": None, "dropout": 0.0, "word_dropout": 0.0},
    **{"output_gate": True, "tags": "none", "gate_bias": 0.0, "ungated": None},
    **{"shared_directions": True, "focus_dropout": 0.3, "unit_words": False},
    **{"forget_bias": 1.0, "limit": None, "bilinear": False, "attention_start": 1.0},
    **{"quiet_negatives": False, "similarity_weight": 1.0, "edits_weight": 1.0},
    **{"regulariser": {"composition": 0.0, "words": 0.0, "universal": 0.0}},
    **{"stop_after": None, "start_share": 0.0, "shuffled": True, "seed": 0, "combine": "sum"},
    **{"first": {}, "first_epochs": 0, "weights": {}, "corpora": {}, "ratings_weight": 1.0, "drawn": {}, "rho": 0.9},
}


def without_removed(recorded: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Settings recorded as JSON without those that the dataclass no longer has, where they made no difference."""
    known = {setting.name for setting in fields(kind)}
    return {
        name: each for name, each in recorded.items() if name in known or REMOVED_SETTINGS.get(name, MISSING) != each
    }


def with_defaults(recorded: dict[str, JsonValue], part: object) -> dict[str, JsonValue]:
    """Settings recorded as JSON, with those added: fields of the dataclass `part`, unknown when it was recorded."""
    assert is_dataclass(part)
    filled = without_removed(recorded, type(part))
    for setting in fields(part):
        value = getattr(part, setting.name)
        inner = filled.get(setting.name)
        if is_dataclass(value) and isinstance(inner, dict):
            filled[setting.name] = with_defaults(inner, value)
        elif setting.name not in filled and setting.default is not MISSING:
            default = asdict(setting.default) if is_dataclass(setting.default) else setting.default  # type: ignore[arg-type]
            filled[setting.name] = json.loads(json.dumps(default))
    return filled
