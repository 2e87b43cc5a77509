"""The service's answers, as its client reads them; the service sends dicts with the same fields.

A field with a default may be absent from an answer. One that is marked ALWAYS is absent only from those of an older
service. `Annotated[X, ...] | None`: the field may be absent, and the client then shows None. `Annotated[X | None, ...]`
is of fields that the service sends as null.
The OpenAPI document is made of these types: their order, docstrings, descriptions and bounds (service/schemas.py).
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

Scale = Literal["similarity", "paraphrase_probability", "relevance_probability"]
EntailmentLabel = Literal["entailment", "neutral", "contradiction", "not_entailment"]
ClaimLabel = Literal["entailed", "contradicted", "not_stated"]
Range = tuple[float, float]
ALWAYS = {"always": True}
SCALE = (
    "what a score says: `similarity` how alike two texts are, 0 to 1, as people rate it; `paraphrase_probability` how "
    "probable it is that they say the same; `relevance_probability` that a candidate is an answer to the query, if it "
    "were one in two cases: over .5 speaks for it, however many candidates there are"
)


def _says(description: str) -> Any:
    return Field(description=description)


def _one_of(*values: str) -> Any:
    """A text of a closed set; today's values are documented, never checked, for a newer service may have more."""
    return Field(json_schema_extra={"enum": [*values]})


def _share(description: str | None = None) -> Any:
    """A number from 0 to 1; only in the documentation, for a client does not check the service."""
    return Field(description=description, json_schema_extra={"minimum": 0, "maximum": 1})


Ratio = Annotated[float, _share()]
_Score = Annotated[float, _share("calibrated similarity")]
_RawScore = Annotated[float, _says("as the model gives it")]
_Rating = Annotated[float, _says("on the rating scale of the corpus, if the model has one")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityResult:
    """The answer for one pair."""

    score: _Score
    raw_score: _RawScore
    rating: _Rating | None = None
    rating_scale: Range | None = None
    tokens: Annotated[tuple[int, int], _says("tokens read of a and of b")]
    truncated: Annotated[tuple[bool, bool], _says("whether a and b were cut at the model's limit")]
    unknown: Annotated[
        tuple[Ratio, Ratio],
        _says(
            "share of the words of a and of b outside the model's vocabulary; "
            "of a long text that is truncated, of the words that were read"
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities:
    """One result for each pair, in the order of the request."""

    model: str
    scale: Annotated[Scale, _says(SCALE)] | None = field(default=None, metadata=ALWAYS)
    results: list[SimilarityResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankResult:
    """The score of one candidate."""

    index: Annotated[int, _says("its position in the request")]
    score: Annotated[float, _share("calibrated, on the scale of the model that scored it")]
    raw_score: Annotated[float, _says("as the model that scored it gives it; the order is by this")]
    stage: (
        Annotated[Literal[1, 2], _says("which of the two stages placed and scored it; absent in one stage")] | None
    ) = None
    id: Annotated[str, _says("of the entry; absent where it has none")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTruncated:
    """Texts that were cut at the model's token limit."""

    query: bool
    candidates: Annotated[list[int], _says("positions in the request")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The candidates by their raw score, best first; of equal ones the earlier first.

    In two stages those that the second model ordered come first, then the others in the order of the first model.
    """

    model: str
    scale: Annotated[Scale, _says(f"of `model`: {SCALE}")] | None = field(default=None, metadata=ALWAYS)
    results: Annotated[list[RankResult], _says("empty where `answered` is false")]
    answered: Annotated[
        bool,
        _says(
            "false: the first is below `min_score` or `threshold`. Then `results` is empty, but of candidates without "
            "`min_score` and `min_confidence`"
        ),
    ] = field(default=True, metadata=ALWAYS)
    confidence: Annotated[
        Ratio | None,
        _says(
            "the probability that the first candidate is right, and so that one of them is; null where none was fitted "
            "for these models, or there is one candidate alone (docs/faq.md)"
        ),
    ] = field(default=None, metadata=ALWAYS)
    threshold: Annotated[
        Ratio | None,
        _says(
            "the confidence from which on there is an answer: `min_confidence`, else that of the fit; null where there "
            "is no confidence, or `min_score` alone decides"
        ),
    ] = field(default=None, metadata=ALWAYS)
    suggestions: Annotated[list[RankResult], _says("the best three, where `results` is empty; absent else")] | None = (
        None
    )
    truncated: RankTruncated
    rerank_model: Annotated[str, _says("model of the second stage; absent in one stage")] | None = None
    rerank_scale: Annotated[Scale, _says("likewise, of `rerank_model`")] | None = None
    rerank_truncated: (
        Annotated[RankTruncated, _says("what was cut at that model's token limit, of what it read")] | None
    ) = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probabilities:
    """The probability of each label of the model; they sum to 1."""

    entailment: Ratio
    neutral: Ratio | None = None
    contradiction: Ratio | None = None
    not_entailment: Annotated[float, _share("of a model of two labels: neutral or contradiction")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntailmentResult:
    """The answer for one pair."""

    label: Annotated[EntailmentLabel, _says("the most probable one")]
    probabilities: Probabilities
    truncated: Annotated[tuple[bool, bool], _says("whether premise and hypothesis were cut")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entailments:
    """One result for each pair, in the order of the request."""

    model: str
    results: list[EntailmentResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPassage:
    """A sentence of a document, or two neighbours, and what it says of a claim."""

    document: Annotated[int, _says("its position in the request")]
    start: Annotated[int, _says("of its first character in the document, from 0, in code points")]
    end: Annotated[int, _says("after its last one")]
    text: Annotated[str, _says("without markup; of a table row its cells")]
    headings: Annotated[list[str], _says("that it stands under, outermost first; the line above a list")]
    label: Annotated[ClaimLabel, _says("what it says of the claim, most probably")]
    probability: Annotated[float, _share("of that")]
    differences: Annotated[
        list[str], _says("numbers, dates and amounts of the claim that are others here: `3 is not 5`")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimProbabilities:
    """Of each label; they sum to 1."""

    entailed: Ratio
    contradicted: Ratio
    not_stated: Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """The answer for one claim."""

    label: Annotated[ClaimLabel, _says("what the documents say of it")]
    confidence: Annotated[float, _share("how probable that label is")]
    probabilities: ClaimProbabilities
    evidence: Annotated[ClaimPassage, _says("that says so; absent where nothing is stated")] | None = None
    runner_up: Annotated[ClaimPassage, _says("what speaks most for another label that states something")]
    truncated: Annotated[bool, _says("whether the claim was cut at the model's limit")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """One result for each claim, in the order of the request."""

    model: str
    encoder: Annotated[str, _says("the model that found the passages")]
    results: list[ClaimResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherText:
    """The nearest text that differs in a fact."""

    index: Annotated[int, _says("its position in the request")]
    why: Annotated[str, _says("how the two differ: `4711 is not 4712`")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateResult:
    """The answer for one text."""

    cluster: Annotated[int, _says("position of the first text that says the same")]
    cluster_size: int
    truncated: Annotated[bool, _says("whether the text was cut at the limit of the model that embeds it")]
    kept_apart: OtherText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearPair:
    """Two texts that are near, and the verdict on them."""

    index_1: Annotated[int, _says("position of the earlier text in the request")]
    index_2: int
    cosine: float
    score: Annotated[float, _share("that both say the same; absent where no model read them")] | None = None
    joined: Annotated[bool, _says("whether they are in one cluster")]
    why: Annotated[str, _says("what spoke for and against it")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """One result for each text, in the order of the request."""

    model: str
    pair_model: Annotated[str, _says("the model that read near pairs; absent where cosines decided")] | None = None
    results: list[DuplicateResult]
    review: Annotated[list[NearPair], _says("pairs in doubt, the most doubtful first")]
    apart: Annotated[list[NearPair], _says("other near pairs that were not joined, the nearest first")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyResult:
    """The answer for one text."""

    label: Annotated[str, _says("the most probable one")]
    probabilities: Annotated[
        dict[str, Ratio], _says("of each label; they sum to 1, except where each was judged by itself")
    ]
    truncated: Annotated[bool, _says("whether the text, or a label in its template, was cut")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """One result for each text, in the order of the request."""

    model: str
    results: list[ClassifyResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedResponse:
    """One embedding for each sentence, in the order of the request."""

    model: str
    dim: int
    embeddings: list[list[float]]
    truncated: Annotated[list[bool], _says("whether each sentence was cut at the model's limit")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensOfSentence:
    """A sentence as the model read it."""

    tokens: Annotated[
        list[str], _says("words; pieces of words, ## where one continues a word; <bucket n> for what no piece covers")
    ]
    truncated: Annotated[bool, _says("whether it was cut at the model's limit")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What an explanation shows, and the range of its numbers."""

    name: str
    description: str
    range: Annotated[Range, _says("the lowest and highest value there can be")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOfTokens(Explained):
    """A number for each token of a with each token of b."""

    values: Annotated[list[list[float]], _says("rows are the tokens of a, columns those of b")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsOfTokens(Explained):
    """A number for each token of a, and one for each of b."""

    a: list[float | None]
    b: list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of a score; docs/explaining.md says what each model shows."""

    model: str
    score: _Score
    raw_score: _RawScore
    rating: _Rating | None = None
    rating_scale: Range | None = None
    a: TokensOfSentence
    b: TokensOfSentence
    matrices: list[MatrixOfTokens]
    vectors: list[VectorsOfTokens]


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
    learnt_from: Annotated[list[str], _says("corpora whose labels taught it; empty: it learnt without")]
    elsewhere: Annotated[
        Literal["good", "chance", "unmeasured"],
        _says("on text of other kinds: good, at or near chance, or not measured; docs/models.md"),
    ]
    measured_on: Annotated[list[str], _says("the corpora of other kinds that say so")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceInfo:
    """What makes `confidence` of a ranking: logistic regression of what the ranking looks like (docs/faq.md)."""

    model: str
    fingerprint: str
    rerank_model: Annotated[str | None, _says("null: of a ranking in one stage")]
    rerank_fingerprint: str | None
    rerank_top: int | None
    intercept: float
    weights: Annotated[dict[str, float], _says("of each feature of the ranking")]
    threshold: Annotated[Ratio, _says("the confidence from which on there is an answer")]
    rows: Annotated[int, _says("questions that it was fitted on")]
    calibration_error: Annotated[float, _says("on questions of an FAQ that it was not fitted on")]
    fitted_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What one model can be asked, and how it was measured."""

    id: str
    title: str
    architecture: str
    family: Annotated[str, _one_of("siamese", "interaction")]
    tasks: Annotated[
        list[str], _says("similarity, entailment, paraphrase, relevance, classification, embedding, explanation")
    ]
    default_for: Annotated[list[str], _says("routes that use it when no model is named")]
    dim: int | None
    max_tokens: int
    languages: Annotated[list[str] | None, _says("of the texts that it is for, as ISO 639 codes; null: not known")] = (
        field(default=None, metadata=ALWAYS)
    )
    rating_scale: Range | None
    labels: Annotated[list[str] | None, _says("that POST /classify answers with; null: none of its own")]
    entailment_labels: Annotated[
        list[str] | None, _says("that POST /entailment answers with; null: it has no entailment")
    ] = field(default=None, metadata=ALWAYS)
    explanations: Annotated[ExplanationNames, _says("what POST /explain shows of it")]
    main: Annotated[bool, _says("one of those to choose from first; the others are also here")] | None = field(
        default=None, metadata=ALWAYS
    )
    open: Annotated[bool, _says("false: opened at its first request, which waits for that")] | None = field(
        default=None, metadata=ALWAYS
    )
    provider: Annotated[str | None, _says("cuda where CUDA runs its graphs, else cpu; null: not open")]
    cache: Annotated[list[str], _says("where vectors are kept: memory, redis; docs/caching.md")]
    fingerprint: str
    figures: Annotated[list[FigureInfo], _says("with ?full=true")] = field(default_factory=list)
    domain: Annotated[list[DomainInfo], _says("for what text each task is; with ?full=true")] | None = None
    confidence: Annotated[list[ConfidenceInfo], _says("for which rankings POST /rank knows it; with ?full=true")] = (
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

    default_model: Annotated[str | None, _says("null: a request must name its rerank_model")]
    default_top: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The served models, the defaults and the limits."""

    models: list[ModelInfo]
    defaults: Annotated[dict[str, str], _says("route -> model")]
    rerank: RerankInfo
    limits: LimitsInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether requests should be sent here, and reasons if not."""

    status: Literal["ready", "degraded", "unready"]
    reasons: list[str]
    models: list[str]
    redis: Annotated[str, _one_of("off", "up", "down")]
