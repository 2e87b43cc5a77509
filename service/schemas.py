"""Bodies of requests and answers, with the examples that /docs shows.

Requests are pydantic models, strict and closed: an unknown or mistyped field is an error. Answers are typed
dicts, so that building one costs nothing before it is serialised. How many pairs and how long a text may be are
settings, checked in `service/routes.py`.
"""

from typing import Annotated, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, JsonValue, with_config
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from contract.manifest import EntailmentLabel

ModelName = Annotated[
    str | None,
    Field(description="which model answers, ID or ID@VERSION; without it, the default one (see GET /models)"),
]
Ratio = Annotated[float, Field(ge=0, le=1)]
TellCached = Annotated[
    bool, Field(description="whether to say of each text if what the model made of it was in a cache already")
]
_PAIR: JsonValue = {"a": "A man is playing a guitar.", "b": "Someone plays an instrument."}
_PREMISE: JsonValue = {"premise": "Two dogs are running through a field.", "hypothesis": "Some animals are outdoors."}
_SENTENCES: JsonValue = ["A man is playing a guitar.", "Someone plays an instrument."]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SentencePair(_Request):
    """Two sentences to compare."""

    a: str
    b: str


class SimilarityRequest(_Request):
    """Pairs to score."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pairs": [_PAIR]}]})

    pairs: list[SentencePair] = Field(min_length=1)
    model: ModelName = None
    tell_cached: TellCached = False


class RankRequest(_Request):
    """Candidates to order by their similarity to a query."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "How do I reset my password?",
                    "candidates": [
                        "Our office opens at nine.",
                        "To choose a new password, follow the link on the sign-in page.",
                    ],
                    "top_k": 1,
                },
                {
                    "query": "A man is playing a guitar.",
                    "candidates": ["A dog sleeps.", "Someone plays an instrument.", "A man plays the flute."],
                    "rerank_model": "avg-sick",
                    "rerank_top": 2,
                },
            ]
        }
    )

    query: str
    candidates: list[str] = Field(min_length=1)
    top_k: int | None = Field(None, ge=1, description="how many of the best to return; all of them without it")
    model: ModelName = None
    rerank_model: str | None = Field(
        None, description="a second model, which orders the best again; any with similarity (see GET /models)"
    )
    rerank_top: int | None = Field(
        None,
        ge=1,
        description="how many of the best the second model orders, 50 if only rerank_model is given; given alone, the "
        "default second model orders them, where there is one",
    )
    tell_cached: TellCached = False


class PremiseAndHypothesis(_Request):
    """Does the premise entail the hypothesis?"""

    premise: str
    hypothesis: str


class EntailmentRequest(_Request):
    """Pairs to label."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pairs": [_PREMISE]}]})

    pairs: list[PremiseAndHypothesis] = Field(min_length=1)
    model: ModelName = None
    tell_cached: TellCached = False


class EmbedRequest(_Request):
    """Sentences to embed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sentences": _SENTENCES}]})

    sentences: list[str] = Field(min_length=1)
    model: ModelName = None
    tell_cached: TellCached = False


class ExplainRequest(_Request):
    """Two sentences whose score is to be explained."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PAIR]})

    a: str
    b: str
    model: ModelName = None


class Named(TypedDict):
    """Who answers."""

    model: str
    model_version: NotRequired[
        Annotated[int, Field(description="which of its versions; absent where the model has none")]
    ]


class SimilarityResult(TypedDict):
    """The answer for one pair."""

    score: Annotated[float, Field(ge=0, le=1, description="calibrated similarity")]
    raw_score: Annotated[float, Field(description="as the model gives it")]
    rating: NotRequired[Annotated[float, Field(description="on the rating scale of the corpus, if the model has one")]]
    rating_scale: NotRequired[tuple[float, float]]
    tokens: Annotated[tuple[int, int], Field(description="tokens read of a and of b")]
    truncated: Annotated[tuple[bool, bool], Field(description="whether a and b were cut at the model's limit")]
    unknown: Annotated[
        tuple[Ratio, Ratio], Field(description="share of the words of a and of b outside the model's vocabulary")
    ]
    cached: NotRequired[Annotated[tuple[bool, bool], Field(description="of a and of b, where tell_cached asked")]]


@with_config(
    ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "avg-paraphrase",
                    "results": [
                        {
                            "score": 0.78,
                            "raw_score": 0.71,
                            "tokens": [7, 5],
                            "truncated": [False, False],
                            "unknown": [0.0, 0.0],
                        }
                    ],
                }
            ]
        }
    )
)
class SimilarityResponse(Named):
    """One result for each pair, in the order of the request."""

    results: list[SimilarityResult]


class RankResult(TypedDict):
    """One candidate."""

    index: Annotated[int, Field(description="its position in the request")]
    score: Annotated[float, Field(ge=0, le=1, description="calibrated similarity to the query")]
    stage: NotRequired[
        Annotated[Literal[1, 2], Field(description="which of the two stages placed and scored it; absent in one stage")]
    ]
    cached: NotRequired[Annotated[bool, Field(description="by the stage that scored it, where tell_cached asked")]]


class RankTruncated(TypedDict):
    """What was cut at the model's token limit."""

    query: bool
    candidates: Annotated[list[int], Field(description="positions in the request")]


@with_config(
    ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "avg-paraphrase",
                    "results": [{"index": 1, "score": 0.63}],
                    "truncated": {"query": False, "candidates": []},
                },
                {
                    "model": "avg-paraphrase",
                    "results": [
                        {"index": 1, "score": 0.7, "stage": 2},
                        {"index": 2, "score": 0.41, "stage": 2},
                        {"index": 0, "score": 0.08, "stage": 1},
                    ],
                    "truncated": {"query": False, "candidates": []},
                    "rerank_model": "avg-sick",
                    "rerank_truncated": {"query": False, "candidates": []},
                },
            ]
        }
    )
)
class RankResponse(Named):
    """The candidates, best first; of equal ones the earlier first.

    In two stages those that the second model ordered come first, then the others in the order of the first model.
    """

    results: list[RankResult]
    truncated: RankTruncated
    rerank_model: NotRequired[Annotated[str, Field(description="who ordered the second stage; absent in one stage")]]
    rerank_model_version: NotRequired[
        Annotated[int, Field(description="which of its versions; absent where the model has none")]
    ]
    rerank_truncated: NotRequired[
        Annotated[RankTruncated, Field(description="what was cut at that model's token limit, of what it read")]
    ]


class Probabilities(TypedDict):
    """Of each label; they sum to 1."""

    entailment: Ratio
    neutral: Ratio
    contradiction: Ratio


class EntailmentResult(TypedDict):
    """The answer for one pair."""

    label: Annotated[EntailmentLabel, Field(description="the most probable one")]
    probabilities: Probabilities
    truncated: Annotated[tuple[bool, bool], Field(description="whether premise and hypothesis were cut")]
    cached: NotRequired[
        Annotated[tuple[bool, bool], Field(description="of premise and hypothesis, where tell_cached asked")]
    ]


@with_config(
    ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "avg-sick",
                    "results": [
                        {
                            "label": "entailment",
                            "probabilities": {"entailment": 0.81, "neutral": 0.17, "contradiction": 0.02},
                            "truncated": [False, False],
                        }
                    ],
                }
            ]
        }
    )
)
class EntailmentResponse(Named):
    """One result for each pair, in the order of the request."""

    results: list[EntailmentResult]


@with_config(
    ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "avg-paraphrase",
                    "dim": 3,
                    "embeddings": [[0.12, -0.4, 0.08], [0.1, -0.2, 0.31]],
                    "truncated": [False, False],
                }
            ]
        }
    )
)
class EmbedResponse(Named):
    """One embedding for each sentence, in the order of the request."""

    dim: int
    embeddings: list[list[float]]
    truncated: Annotated[list[bool], Field(description="whether each sentence was cut at the model's limit")]
    cached: NotRequired[Annotated[list[bool], Field(description="of each sentence, where tell_cached asked")]]


class TokensOfSentence(TypedDict):
    """A sentence as the model read it."""

    tokens: Annotated[
        list[str],
        Field(description="words; pieces of words, ## where one continues a word; <bucket n> for what no piece covers"),
    ]
    truncated: Annotated[bool, Field(description="whether it was cut at the model's limit")]


class MatrixOfTokens(TypedDict):
    """A number for each token of a with each token of b."""

    name: str
    description: str
    range: NotRequired[Annotated[tuple[float, float], Field(description="the lowest and highest value there can be")]]
    values: Annotated[list[list[float]], Field(description="rows are the tokens of a, columns those of b")]


class VectorsOfTokens(TypedDict):
    """A number for each token of a, and one for each of b."""

    name: str
    description: str
    range: NotRequired[Annotated[tuple[float, float], Field(description="the lowest and highest value there can be")]]
    a: list[float | None]
    b: list[float | None]


@with_config(
    ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "avg-paraphrase",
                    "model_version": 2,
                    "score": 0.43,
                    "raw_score": 0.64,
                    "rating": 2.15,
                    "rating_scale": [0.0, 5.0],
                    "a": {"tokens": ["guitars"], "truncated": False},
                    "b": {"tokens": ["some", "instruments"], "truncated": False},
                    "matrices": [{"name": "contributions", "description": "...", "values": [[0.02, 0.62]]}],
                    "vectors": [
                        {"name": "contributions", "description": "...", "a": [0.64], "b": [0.02, 0.62]},
                        {
                            "name": "deletion",
                            "description": "...",
                            "range": [-2.0, 2.0],
                            "a": [None],
                            "b": [-0.03, 0.5],
                        },
                    ],
                }
            ]
        }
    )
)
class ExplainResponse(Named):
    """What made the score; docs/explaining.md says which model shows what."""

    score: Annotated[float, Field(ge=0, le=1, description="calibrated similarity")]
    raw_score: Annotated[float, Field(description="as the model gives it")]
    rating: NotRequired[Annotated[float, Field(description="on the rating scale of the corpus, if the model has one")]]
    rating_scale: NotRequired[tuple[float, float]]
    a: TokensOfSentence
    b: TokensOfSentence
    matrices: list[MatrixOfTokens]
    vectors: list[VectorsOfTokens]


class FigureInfo(TypedDict):
    """One measured number."""

    task: str
    corpus: str
    split: str
    metric: str
    value: float
    rows: int


class ExplanationNames(TypedDict):
    """What an explanation by a model holds."""

    matrices: list[str]
    vectors: list[str]


class ModelInfo(TypedDict):
    """One model, or one version of a model."""

    id: str
    name: Annotated[str, Field(description="what a request says to get exactly this one: the id, or ID@VERSION")]
    version: Annotated[int | None, Field(description="null where the model has no versions")]
    versions: Annotated[list[int], Field(description="those in its folder; GET /models lists the ones that are served")]
    title: str
    architecture: str
    family: Literal["siamese", "interaction"]
    tasks: Annotated[list[str], Field(description="similarity, entailment, embedding, explanation")]
    default_for: Annotated[list[str], Field(description="routes that use it when no model is named")]
    dim: int | None
    max_tokens: int
    rating_scale: tuple[float, float] | None
    explanations: Annotated[ExplanationNames, Field(description="what POST /explain shows of it")]
    provider: str
    cache: Annotated[list[str], Field(description="where vectors are kept: memory, redis; docs/caching.md")]
    fingerprint: str
    figures: list[FigureInfo]


class LimitsInfo(TypedDict):
    """What a request may ask."""

    max_body_bytes: int
    max_pairs: int
    max_candidates: int
    max_sentences: int
    max_text_chars: int
    max_explained_tokens: int
    request_timeout_seconds: float


class RerankInfo(TypedDict):
    """The second stage of /rank, for what a request leaves out."""

    default_model: Annotated[str | None, Field(description="null: a request must name its rerank_model")]
    default_top: int


class ModelsResponse(TypedDict):
    """What is served here."""

    models: list[ModelInfo]
    defaults: Annotated[dict[str, str], Field(description="route -> model")]
    rerank: RerankInfo
    limits: LimitsInfo


class ReloadedModel(TypedDict):
    """What a reload found of one model."""

    model: Annotated[str, Field(description="its id, or the name of its folder")]
    outcome: Literal["unchanged", "reloaded", "added", "removed", "failed"]
    version: Annotated[int | None, Field(description="that the id means now; null where the model has no versions")]
    fingerprint: Annotated[str | None, Field(description="of what the id means now; null where nothing is served")]
    reason: Annotated[str | None, Field(description="why it failed; what was served before goes on being served")]


class ReloadReport(TypedDict):
    """What a reload did."""

    status: Annotated[Literal["done", "failed"], Field(description="failed: of one model or more; others are swapped")]
    models: list[ReloadedModel]
    seconds: float


class Liveness(TypedDict):
    """The process answers."""

    status: Literal["alive"]


class Readiness(TypedDict):
    """Whether requests should be sent here, and why (not)."""

    status: Literal["ready", "degraded", "unready"]
    reasons: list[str]
    models: list[str]
    redis: Literal["off", "up", "down"]


class ErrorDetail(TypedDict):
    """What went wrong."""

    code: str
    message: str
    field: Annotated[str | None, Field(description="where in the request, such as pairs.3.a")]
    limit: Annotated[int | None, Field(description="the number that was exceeded")]
    request_id: str


@with_config(
    ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "code": "empty_text",
                        "message": "the text has no visible character",
                        "field": "pairs.3.a",
                        "limit": None,
                        "request_id": "5f0c6a52d1f14a0b9a4bd2aa",
                    }
                }
            ]
        }
    )
)
class ErrorResponse(TypedDict):
    """The body of every error."""

    error: ErrorDetail
