"""The service's answers as frozen dataclasses, with its field names; see /docs of a service.

Unknown fields of a newer service are ignored. None stands for a field that was absent or null.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Scale = Literal["similarity", "paraphrase_probability", "relevance_probability"]
ClaimLabel = Literal["entailed", "contradicted", "not_stated"]
EntailmentLabel = Literal["entailment", "neutral", "contradiction", "not_entailment"]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SimilarityResult:
    """The result for one pair (a, b); where there are two values, the first is for a."""

    score: float  # 0..1, calibrated
    raw_score: float  # the model's output
    tokens: tuple[int, int]
    truncated: tuple[bool, bool]  # cut at the model's limit
    unknown: tuple[float, float]  # share of the words that the model does not know
    rating: float | None = None  # on the scale of the model's corpus
    rating_scale: Range | None = None
    language: tuple[str | None, str | None] | None = None  # "de?": seems to be in a language that the model is not for


@dataclass(frozen=True, slots=True)
class Similarities:
    """One result for each pair, in input order."""

    model: str
    results: list[SimilarityResult]
    scale: Scale | None = None  # of the scores; None: an older service


@dataclass(frozen=True, slots=True)
class RankResult:
    """The score of one candidate."""

    index: int  # its position among the candidates given
    score: float  # 0..1, calibrated, on the scale of the model that scored it
    raw_score: float  # as the model that scored it gives it, which orders them
    stage: Literal[1, 2] | None = None  # which of two stages placed it
    language: str | None = None  # "de?": seems to be in a language that the model is not for
    id: str | None = None  # of the entry of an FAQ


@dataclass(frozen=True, slots=True)
class RankTruncated:
    """Texts that were cut at a model's limit."""

    query: bool
    candidates: list[int]  # positions among the candidates given


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of a query, best first."""

    model: str
    results: list[RankResult]
    truncated: RankTruncated
    rerank_model: str | None = None  # the model of the second stage
    rerank_truncated: RankTruncated | None = None
    scale: Scale | None = None  # of the scores that `model` gave; None: an older service
    rerank_scale: Scale | None = None  # of those that `rerank_model` gave
    language: str | None = None  # of the query: "de?" seems to be in a language that the model is not for
    answered: bool = True  # False: the first is below `min_score` or `min_confidence`, and `results` is empty
    confidence: float | None = None  # probability that the first is right; None: not known


@dataclass(frozen=True, slots=True)
class Probabilities:
    """The probability of each label of the model, which sum to 1; None of a label that it does not have."""

    entailment: float
    neutral: float | None = None
    contradiction: float | None = None
    not_entailment: float | None = None  # of a model of two labels: neutral or contradiction


@dataclass(frozen=True, slots=True)
class EntailmentResult:
    """The result for one pair (premise, hypothesis), or for one claim and the sentence that supports it best."""

    label: EntailmentLabel
    probabilities: Probabilities
    truncated: tuple[bool, bool]
    index: int | None = None  # of claims: position of the sentence
    sentence: str | None = None
    language: tuple[str | None, str | None] | None = None  # "de?": seems to be in a language that the model is not for


@dataclass(frozen=True, slots=True)
class Entailments:
    """One result for each pair or claim, in input order."""

    model: str
    results: list[EntailmentResult]


@dataclass(frozen=True, slots=True)
class ClaimPassage:
    """A sentence of a document, or two neighbours, and what it says of a claim."""

    document: int  # its position among the documents given
    start: int  # of its first character in the document, from 0
    end: int  # after its last one
    text: str  # without markup
    headings: list[str]  # that it stands under, outermost first
    label: ClaimLabel  # what it says of the claim
    probability: float  # of that
    differences: list[str]  # numbers, dates and amounts of the claim that are others here


@dataclass(frozen=True, slots=True)
class ClaimProbabilities:
    """Of each label; they sum to 1."""

    entailed: float
    contradicted: float
    not_stated: float


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What the documents say of one claim."""

    label: ClaimLabel
    confidence: float  # the probability of that label
    probabilities: ClaimProbabilities
    runner_up: ClaimPassage  # what speaks most for another label that states something
    truncated: bool
    evidence: ClaimPassage | None = None  # that says so; None: nothing is stated
    language: str | None = None  # "de?": seems to be in a language that the model is not for


@dataclass(frozen=True, slots=True)
class Claims:
    """One result for each claim, in input order."""

    model: str
    encoder: str  # that found the passages
    results: list[ClaimResult]


@dataclass(frozen=True, slots=True)
class ClassifyResult:
    """The result for one text."""

    label: str  # the most probable one
    probabilities: dict[str, float]  # of each label
    truncated: bool
    language: str | None = None  # "de?": seems to be in a language that the model is not for


@dataclass(frozen=True, slots=True)
class Labels:
    """One result for each text, in input order."""

    model: str
    results: list[ClassifyResult]


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """One embedding for each sentence, in input order."""

    model: str
    dim: int
    embeddings: npt.NDArray[np.float32]  # [sentences, dim]
    truncated: list[bool]
    language: list[str | None] | None = None  # of each sentence: "de?" seems to be in one that the model is not for


@dataclass(frozen=True, slots=True)
class TokensOfSentence:
    """A sentence's tokens, as the model read them."""

    tokens: list[str]
    truncated: bool
    language: str | None = None  # "de?": seems to be in a language that the model is not for


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
    """The explanation of one pair's score."""

    model: str
    score: float
    raw_score: float
    a: TokensOfSentence
    b: TokensOfSentence
    matrices: list[MatrixOfTokens]
    vectors: list[VectorsOfTokens]
    rating: float | None = None
    rating_scale: Range | None = None


@dataclass(frozen=True, slots=True)
class FigureInfo:
    """One measured figure of a model."""

    task: str
    corpus: str
    split: str
    metric: str
    value: float
    rows: int


@dataclass(frozen=True, slots=True)
class ExplanationNames:
    """Names of the matrices and vectors in a model's explanations."""

    matrices: list[str]
    vectors: list[str]


@dataclass(frozen=True, slots=True)
class DomainInfo:
    """For what text one task of a model is."""

    task: str
    learnt_from: list[str]  # corpora whose labels taught it; empty: it learnt without
    elsewhere: Literal["good", "chance", "unmeasured"]  # on text of other kinds
    measured_on: list[str]  # the corpora of other kinds that say so


@dataclass(frozen=True, slots=True)
class ConfidenceInfo:
    """What makes the confidence of a ranking by these models: logistic regression of what it looks like."""

    model: str
    fingerprint: str
    rerank_model: str | None  # None: of a ranking in one stage
    rerank_fingerprint: str | None
    rerank_top: int | None
    intercept: float
    weights: dict[str, float]  # of each feature of the ranking
    rows: int  # questions that it was fitted on
    calibration_error: float  # on questions of an FAQ that it was not fitted on
    fitted_by: str  # the command


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What one model can be asked, and how it was measured."""

    id: str
    title: str
    architecture: str
    family: str
    tasks: list[str]
    default_for: list[str]
    dim: int | None
    max_tokens: int
    rating_scale: Range | None
    labels: list[str] | None  # that it gives to texts; None: it has none of its own
    explanations: ExplanationNames
    provider: str | None  # None: it is not open
    cache: list[str]  # memory, redis
    fingerprint: str
    figures: list[FigureInfo] = field(default_factory=list)
    domain: list[DomainInfo] | None = None  # None: an older service
    confidence: list[ConfidenceInfo] = field(default_factory=list)
    main: bool | None = None  # one of those to choose from first; None: an older service
    open: bool | None = None  # False: it is opened at its first request; None: an older service
    languages: list[str] | None = None  # of the texts that it is for: ISO 639 codes; None: not known


@dataclass(frozen=True, slots=True)
class LimitsInfo:
    """Limits of one request."""

    max_body_bytes: int
    max_pairs: int
    max_candidates: int
    max_sentences: int
    max_text_chars: int
    max_explained_tokens: int
    request_timeout_seconds: float
    max_claims: int = 100  # not said by an older service
    max_document_chars: int = 200_000


@dataclass(frozen=True, slots=True)
class RerankInfo:
    """Defaults of the second stage of a ranking."""

    default_model: str | None
    default_top: int


@dataclass(frozen=True, slots=True)
class Models:
    """The served models, the defaults and the limits."""

    models: list[ModelInfo]
    defaults: dict[str, str]  # route -> model
    rerank: RerankInfo
    limits: LimitsInfo


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service is ready, and the reasons if it is not."""

    status: Literal["ready", "degraded", "unready"]
    reasons: list[str]
    models: list[str]
    redis: str
