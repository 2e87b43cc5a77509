"""What the service says of itself: its models, limits and readiness; answers as those in `core/answers.py`."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from core.answers import ALWAYS, Range, Ratio, says


def _one_of(*values: str) -> Any:
    """A text of a closed set; today's values are documented, never checked, for a newer service may have more."""
    return Field(json_schema_extra={"enum": [*values]})


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureInfo:
    """One measured figure of a model."""

    task: str
    corpus: str
    split: str
    metric: str
    value: float
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationNames:
    """Names of the matrices and vectors in a model's explanations."""

    matrices: list[str]
    vectors: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainInfo:
    """For what text one task of a model is."""

    task: str
    learnt_from: Annotated[list[str], says("corpora whose labels taught it; empty: it learnt without")]
    elsewhere: Annotated[
        Literal["good", "chance", "unmeasured"],
        says("on text of other kinds: good, at or near chance, or not measured; docs/models.md"),
    ]
    measured_on: Annotated[list[str], says("the corpora of other kinds that say so")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceInfo:
    """What makes `confidence` of a ranking: logistic regression of what the ranking looks like (docs/faq.md)."""

    model: str
    fingerprint: str
    rerank_model: Annotated[str | None, says("null: of a ranking in one stage")]
    rerank_fingerprint: str | None
    rerank_top: int | None
    intercept: float
    weights: Annotated[dict[str, float], says("of each feature of the ranking")]
    threshold: Annotated[Ratio, says("the confidence from which on there is an answer")]
    rows: Annotated[int, says("questions that it was fitted on")]
    calibration_error: Annotated[float, says("on questions of an FAQ that it was not fitted on")]
    fitted_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What one model can be asked, and how it was measured."""

    id: str
    title: str
    architecture: str
    family: Annotated[str, _one_of("siamese", "interaction")]
    tasks: Annotated[
        list[str], says("similarity, entailment, paraphrase, relevance, classification, embedding, explanation")
    ]
    default_for: Annotated[list[str], says("routes that use it when no model is named")]
    dim: int | None
    max_tokens: int
    languages: Annotated[list[str] | None, says("of the texts that it is for, as ISO 639 codes; null: not known")] = (
        field(default=None, metadata=ALWAYS)
    )
    rating_scale: Range | None
    labels: Annotated[list[str] | None, says("that POST /classify answers with; null: none of its own")]
    entailment_labels: Annotated[
        list[str] | None, says("that POST /entailment answers with; null: it has no entailment")
    ] = field(default=None, metadata=ALWAYS)
    explanations: Annotated[ExplanationNames, says("what POST /explain shows of it")]
    main: Annotated[bool, says("one of those to choose from first; the others are also here")] | None = field(
        default=None, metadata=ALWAYS
    )
    open: Annotated[bool, says("false: opened at its first request, which waits for that")] | None = field(
        default=None, metadata=ALWAYS
    )
    provider: Annotated[str | None, says("cuda where CUDA runs its graphs, else cpu; null: not open")]
    cache: Annotated[list[str], says("where vectors are kept: memory, redis; docs/caching.md")]
    fingerprint: str
    figures: Annotated[list[FigureInfo], says("with ?full=true")] = field(default_factory=list)
    domain: Annotated[list[DomainInfo], says("for what text each task is; with ?full=true")] | None = None
    confidence: Annotated[list[ConfidenceInfo], says("for which rankings POST /rank knows it; with ?full=true")] = (
        field(default_factory=list)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsInfo:
    """Limits of one request."""

    max_body_bytes: int
    max_pairs: int
    max_candidates: int
    max_sentences: int
    max_text_chars: int
    max_document_chars: int = field(default=200_000, metadata=ALWAYS)
    max_claims: int = field(default=100, metadata=ALWAYS)
    max_explained_tokens: int
    request_timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankInfo:
    """Defaults of the second stage of /rank."""

    default_model: Annotated[str | None, says("null: a request must name its rerank_model")]
    default_top: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The served models, the defaults and the limits."""

    models: list[ModelInfo]
    defaults: Annotated[dict[str, str], says("route -> model")]
    rerank: RerankInfo
    limits: LimitsInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether requests should be sent here, and reasons if not."""

    status: Literal["ready", "degraded", "unready"]
    reasons: list[str]
    models: list[str]
    redis: Annotated[str, _one_of("off", "up", "down")]
