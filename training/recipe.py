"""A recipe: every setting of one run, as a typed value. It travels as JSON in the run and in the manifest."""

import json
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass

from pydantic import JsonValue

from training.architectures import ArchitectureConfig, InteractionConfig
from training.corpora.pairwise import Corpus
from training.loop import Schedule
from training.models import Precision
from training.objectives.manhattan import ManhattanConfig
from training.objectives.pairwise import PairwiseConfig
from training.objectives.sentiment import SentimentConfig
from training.objectives.supervised import SupervisedConfig
from training.objectives.teacher_cosine import TeacherCosineConfig
from training.objectives.teacher_margin import TeacherMarginConfig
from training.objectives.transfer import MarginConfig
from training.optimisers import OptimiserConfig
from training.storage import Storage
from training.tuned_teacher import DEFAULT_TUNING, TuningConfig


class RecipeError(ValueError):
    """A recipe is asked for what it has not: a publication, a test part, another storage of its words."""


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
class FoundTable:
    """How a word table is made from a file of published word vectors (`training.found`)."""

    name: str
    corpus: str  # of the catalogue, which knows its file, licence and source
    pieces: int = 6_000
    buckets: int = 1_024


@dataclass(frozen=True)
class TeacherSentences:
    """Unlabelled sentences for regression to a teacher (`training.corpora.mixtures.unlabelled_sentences`)."""

    limit: int
    seed: int = 0
    glosses: int = 0  # of WordNet, beside the limit (`training.glosses`)


@dataclass(frozen=True)
class ParaphrasePairs:
    """Positive pairs for the margin loss (`training.corpora.mixtures.paraphrase_pairs`)."""

    limit: int | None
    seed: int = 0


@dataclass(frozen=True)
class SentencesAndPairs:
    """Both of them, for the joint loss."""

    sentences: TeacherSentences
    pairs: ParaphrasePairs


@dataclass(frozen=True)
class SickPairs:
    """SICK train, pairs that also occur in its trial or test part left out."""

    synonyms: int = 0  # so many copies more, with words replaced by WordNet synonyms (`training.synonyms`)
    seed: int = 0  # of the copies


@dataclass(frozen=True)
class STSSplitPairs:
    """The train part of STS 2012-2015 (`training.corpora.sts_split`)."""

    seed: int = 0  # of the split


@dataclass(frozen=True)
class SSTSentences:
    """SST train, binary: sentences, no phrases (`training.corpora.sst`)."""


@dataclass(frozen=True)
class STSPairs:
    """MaLSTM's released pre-training pairs without those of SICK (`training.corpora.malstm`)."""


@dataclass(frozen=True)
class TeacherPairs:
    """Pairs of neighbouring sentences that a teacher rates on SICK's scale (`training.teacher_pairs`)."""

    captions: int = 40_000  # captions of 4 to 14 words beside the sentences of SICK train
    in_domain: int = 60  # partners of each sentence of SICK, among its sentences
    general: int = 4  # partners of each caption, among captions
    tuning: TuningConfig = DEFAULT_TUNING  # of the teacher, on SICK train
    seed: int = 0


@dataclass(frozen=True)
class CorpusPairs:
    """What people said of the training pairs of a corpus (`training.corpora.pairwise`)."""

    corpus: Corpus


@dataclass(frozen=True)
class TeacherAnswers:
    """Questions with their candidate answers, each pair's target the teacher's cosine (`training.teacher_answers`)."""

    corpora: tuple[Corpus, ...] = ("wikiqa", "trecqa")
    limit: int | None = None  # so many pairs of each corpus at most, drawn at random
    seed: int = 0  # of the draw
    selection: Corpus = "wikiqa"  # whose development part chooses the epoch


@dataclass(frozen=True)
class Publication:
    """How a run becomes a model folder."""

    model_id: str
    title: str
    storage: Storage = "int8"  # of the word table
    max_tokens: int = 512
    keep_words: int | None = None  # publish only the most frequent words; the others go to the fallback


@dataclass(frozen=True)
class Recipe:
    """One experiment."""

    name: str
    reaches: str  # what it should reach, on what machine, in what time
    table: TableRecipe | FoundTable
    architecture: ArchitectureConfig | InteractionConfig
    data: (
        TeacherSentences
        | ParaphrasePairs
        | SentencesAndPairs
        | SickPairs
        | STSSplitPairs
        | SSTSentences
        | STSPairs
        | TeacherPairs
        | CorpusPairs
        | TeacherAnswers
    )
    objective: (
        TeacherCosineConfig
        | MarginConfig
        | TeacherMarginConfig
        | SupervisedConfig
        | SentimentConfig
        | ManhattanConfig
        | PairwiseConfig
    )
    optimiser: OptimiserConfig
    schedule: Schedule
    start: str | None = None  # the recipe whose trained encoder (of another architecture: words) this one starts from
    start_seed: int | None = None  # of that run; None: the seed of this one
    random_start: bool = False  # word vectors drawn at random instead of taken from the table
    row_scale: float = 1.0  # word vectors are multiplied by this before training: heads want embeddings near length 1
    map_unseen: bool = False  # afterwards, move rows that training never met by a ridge map
    precision: Precision = "float32"  # of matrix products in training: bfloat16 is 2.4x as fast for recurrent encoders
    max_tokens: int = 128  # longer training sentences are cut
    publication: Publication | None = None

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


def with_defaults(recorded: dict[str, JsonValue], part: object) -> dict[str, JsonValue]:
    """Settings recorded as JSON, with those added: fields of the dataclass `part`, unknown when it was recorded."""
    assert is_dataclass(part)
    filled = dict(recorded)
    for setting in fields(part):
        value = getattr(part, setting.name)
        inner = filled.get(setting.name)
        if is_dataclass(value) and isinstance(inner, dict):
            filled[setting.name] = with_defaults(inner, value)
        elif setting.name not in filled and setting.default is not MISSING:
            default = asdict(setting.default) if is_dataclass(setting.default) else setting.default  # type: ignore[arg-type]
            filled[setting.name] = json.loads(json.dumps(default))
    return filled
