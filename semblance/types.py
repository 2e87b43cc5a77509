"""What the service answers, as frozen dataclasses with the names of its own fields; see /docs of a service.

Fields that a newer service adds are ignored; a field that is None was not in the answer, or was null.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

EntailmentLabel = Literal["entailment", "neutral", "contradiction"]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SimilarityResult:
    """The answer for one pair (a, b); of two values the first is a's."""

    score: float  # 0..1, calibrated
    raw_score: float  # as the model gives it
    tokens: tuple[int, int]
    truncated: tuple[bool, bool]  # cut at the model's limit
    unknown: tuple[float, float]  # share of the words that the model does not know
    rating: float | None = None  # on the scale of the model's corpus
    rating_scale: Range | None = None
    cached: tuple[bool, bool] | None = None  # where tell_cached asked


@dataclass(frozen=True, slots=True)
class Similarities:
    """One result for each pair, in their order."""

    model: str
    results: list[SimilarityResult]
    model_version: int | None = None  # None: it has none, or a large call met several


@dataclass(frozen=True, slots=True)
class RankResult:
    """One candidate."""

    index: int  # its position among the candidates given
    score: float  # 0..1, calibrated similarity to the query
    stage: Literal[1, 2] | None = None  # which of two stages placed it
    cached: bool | None = None  # where tell_cached asked


@dataclass(frozen=True, slots=True)
class RankTruncated:
    """What was cut at a model's limit."""

    query: bool
    candidates: list[int]  # positions among the candidates given


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first."""

    model: str
    results: list[RankResult]
    truncated: RankTruncated
    rerank_model: str | None = None  # who ordered the best again
    rerank_truncated: RankTruncated | None = None
    model_version: int | None = None  # None: it has none, or a large call met several
    rerank_model_version: int | None = None


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Of each label; they sum to 1."""

    entailment: float
    neutral: float
    contradiction: float


@dataclass(frozen=True, slots=True)
class EntailmentResult:
    """The answer for one pair (premise, hypothesis)."""

    label: EntailmentLabel
    probabilities: Probabilities
    truncated: tuple[bool, bool]
    cached: tuple[bool, bool] | None = None  # where tell_cached asked


@dataclass(frozen=True, slots=True)
class Entailments:
    """One result for each pair, in their order."""

    model: str
    results: list[EntailmentResult]
    model_version: int | None = None  # None: it has none, or a large call met several


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """One embedding for each sentence, in their order."""

    model: str
    dim: int
    embeddings: npt.NDArray[np.float32]  # [sentences, dim]
    truncated: list[bool]
    cached: list[bool] | None = None  # where tell_cached asked
    model_version: int | None = None  # None: it has none, or a large call met several


@dataclass(frozen=True, slots=True)
class TokensOfSentence:
    """A sentence as the model read it."""

    tokens: list[str]
    truncated: bool


@dataclass(frozen=True, slots=True)
class MatrixOfTokens:
    """A number for each token of a (rows) with each token of b (columns)."""

    name: str
    description: str
    values: list[list[float]]
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class VectorsOfTokens:
    """A number for each token of a, and one for each of b."""

    name: str
    description: str
    a: list[float | None]
    b: list[float | None]
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What made the score of one pair."""

    model: str
    score: float
    raw_score: float
    a: TokensOfSentence
    b: TokensOfSentence
    matrices: list[MatrixOfTokens]
    vectors: list[VectorsOfTokens]
    rating: float | None = None
    rating_scale: Range | None = None
    model_version: int | None = None  # None: it has none, or a large call met several


@dataclass(frozen=True, slots=True)
class FigureInfo:
    """One measured number."""

    task: str
    corpus: str
    split: str
    metric: str
    value: float
    rows: int


@dataclass(frozen=True, slots=True)
class ExplanationNames:
    """What an explanation by a model holds."""

    matrices: list[str]
    vectors: list[str]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model, or one version of a model."""

    id: str
    name: str  # what a request says to get exactly this one
    version: int | None
    versions: list[int]  # those in its folder
    title: str
    architecture: str
    family: str
    tasks: list[str]
    default_for: list[str]
    dim: int | None
    max_tokens: int
    rating_scale: Range | None
    explanations: ExplanationNames
    provider: str
    cache: list[str]  # memory, redis
    fingerprint: str
    figures: list[FigureInfo]


@dataclass(frozen=True, slots=True)
class LimitsInfo:
    """What one request may ask."""

    max_body_bytes: int
    max_pairs: int
    max_candidates: int
    max_sentences: int
    max_text_chars: int
    max_explained_tokens: int
    request_timeout_seconds: float


@dataclass(frozen=True, slots=True)
class RerankInfo:
    """The second stage of a ranking, for what a request leaves out."""

    default_model: str | None
    default_top: int


@dataclass(frozen=True, slots=True)
class Models:
    """What is served."""

    models: list[ModelInfo]
    defaults: dict[str, str]  # route -> model
    rerank: RerankInfo
    limits: LimitsInfo


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests should be sent there, and why (not)."""

    status: Literal["ready", "degraded", "unready"]
    reasons: list[str]
    models: list[str]
    redis: str
