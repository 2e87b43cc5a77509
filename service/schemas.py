"""Bodies of requests and answers; those of requests with the examples in /docs.

Requests are pydantic models: an unknown or mistyped field is an error. Answers are typed dicts, which are fast to
build. `semblance/types.py` repeats them as dataclasses, because the client does not import the service; a test compares
both. Lengths of lists and texts are checked in `service/api/limits.py`.
"""

from typing import Annotated, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainValidator, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from contract.manifest import EntailmentLabel, Role, ScoreTask
from contract.ranking import MOST_ENTRIES, ConfidenceFit, Match

ModelName = Annotated[
    str | None,
    Field(description="which model answers; without it, the default one (see GET /models)"),
]
Ratio = Annotated[float, Field(ge=0, le=1)]
Scale = Literal["similarity", "paraphrase_probability", "relevance_probability"]
SCALE = (
    "what a score says: `similarity` how alike two texts are, 0 to 1, as people rate it; `paraphrase_probability` how "
    "probable it is that they say the same; `relevance_probability` that a candidate is an answer to the query, if it "
    "were one in two cases: over .5 speaks for it, however many candidates there are"
)
SCALES: dict[ScoreTask, Scale] = {
    "similarity": "similarity",
    "paraphrase": "paraphrase_probability",
    "relevance": "relevance_probability",
}
_PAIR: JsonValue = {"a": "A man is playing a guitar.", "b": "Someone plays an instrument."}
_PREMISE: JsonValue = {"premise": "Two dogs are running through a field.", "hypothesis": "Some animals are outdoors."}
_SENTENCES: JsonValue = ["A man is playing a guitar.", "Someone plays an instrument."]


# Only in the documentation: an empty text has its own error, and the tokenizer decides what is empty.
Text = Annotated[str, Field(json_schema_extra={"minLength": 1})]


def one_or_many(value: object) -> str | list[str]:
    """A text, or a list of at least one; a union of both would name its own branches in errors."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("texts", "expected a text or a list of texts")
    if not value:
        raise PydanticCustomError("texts", "expected at least one text")
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise PydanticCustomError("texts", "item {position} is no text", {"position": i})
    return value


TextList = Annotated[list[Text], Field(min_length=1, fail_fast=True)]
OneOrMany = Annotated[str | list[str], PlainValidator(one_or_many, json_schema_input_type=Text | TextList)]


class OwnRequest(BaseModel):
    """A request in our own format; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


_as_own = with_config(ConfigDict(extra="forbid", strict=True))


# Pairs are dicts, not models: a request may have many, and an object with two more of pydantic's own costs more memory
# than its texts.
@_as_own
class SentencePair(TypedDict):
    """Two sentences to compare."""

    a: Text
    b: Text


class SimilarityRequest(OwnRequest):
    """Pairs of sentences to score."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pairs": [_PAIR]}]})

    pairs: list[SentencePair] = Field(min_length=1, fail_fast=True)
    task: Literal["similarity", "paraphrase", "relevance"] = Field(
        "similarity",
        description="what the scores say; `paraphrase`, and `relevance` of b to a, are for models that have it "
        "(see GET /models)",
    )
    model: ModelName = None


@_as_own
class Entry(TypedDict):
    """One entry of an FAQ."""

    question: Text
    answer: Text
    id: NotRequired[Annotated[str, Field(description="given back with its result")]]


class RankRequest(OwnRequest):
    """Candidates, or the entries of an FAQ, to order by their relevance, or similarity, to a query."""

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
                {
                    "query": "I cannot sign in any more.",
                    "entries": [
                        {"id": "hours", "question": "When are you open?", "answer": "From nine to five."},
                        {"id": "password", "question": "I forgot my password.", "answer": "Ask for a new one."},
                    ],
                    "match": "either",
                    "min_score": 0.2,
                },
            ]
        }
    )

    query: Text
    candidates: TextList | None = None
    entries: Annotated[list[Entry], Field(min_length=1, max_length=MOST_ENTRIES, fail_fast=True)] | None = Field(
        None, description="of an FAQ, in the place of candidates"
    )
    match: Match = Field(
        "both",
        description="what of an entry is compared with the query: its `question`, its `answer`, `both` as one text, or "
        "`either`, of which the better one counts",
    )
    top_k: int | None = Field(None, ge=1, description="how many of the best to return; all of them without it")
    model: ModelName = None
    rerank_model: str | None = Field(
        None, description="a second model, which orders the best again; any with similarity (see GET /models)"
    )
    rerank_top: int | None = Field(
        None,
        ge=1,
        description="how many of the best the second model orders, 15 if only rerank_model is given; given alone, the "
        "default second model orders them, where there is one",
    )
    min_score: Ratio | None = Field(
        None, description="where the first has a lower score, nothing is answered: `results` is empty"
    )
    min_confidence: Ratio | None = Field(
        None, description="likewise, where `confidence` is lower; refused where there is none"
    )
    confidence_fit: ConfidenceFit | None = Field(
        None, description="what `semblance choose --faq` found for your own FAQ, in the place of the model's own"
    )


@_as_own
class PremiseAndHypothesis(TypedDict):
    """Does the premise entail the hypothesis?"""

    premise: Text
    hypothesis: Text


class EntailmentRequest(OwnRequest):
    """Pairs to label; or claims, each to be held against every sentence of a document."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"pairs": [_PREMISE]},
                {
                    "premise": "Two dogs are running through a field. A man in a red coat watches them.",
                    "hypotheses": ["Some animals are outdoors.", "Somebody watches the dogs."],
                },
            ]
        }
    )

    pairs: Annotated[list[PremiseAndHypothesis], Field(min_length=1, fail_fast=True)] | None = None
    premise: OneOrMany | None = Field(
        None, description="a document, with hypotheses in the place of pairs: its sentences, or a text that is split"
    )
    hypotheses: TextList | None = Field(None, description="claims about the premise")
    model: ModelName = None


class ClaimsRequest(OwnRequest):
    """Claims, each to be held against all of the documents."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": "# Refunds\n\n- Unused goods: within 30 days.\n- Gift cards are not refunded.",
                    "claims": ["You can return unused goods for two weeks only.", "Gift cards are not paid back."],
                }
            ]
        }
    )

    documents: OneOrMany = Field(
        description="one or several, in plain text or Markdown: sentences, list items and table rows are read with the "
        "headings before them"
    )
    claims: TextList = Field(description="a sentence each")
    model: str | None = Field(
        None, description="which model reads passages and claims; one with entailment, in three labels (GET /models)"
    )
    encoder: str | None = Field(
        None, description="whose embeddings find the passages; without it the default one of /embed"
    )


class ClassifyRequest(OwnRequest):
    """Texts to label: with a model's own labels, or with those given here."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "A warm and funny film."},
                {"text": ["The striker scored twice.", "Shares fell."], "labels": ["sports", "business"]},
            ]
        }
    )

    text: OneOrMany
    labels: TextList | None = Field(
        None, description="judged by an entailment model; without them a model with labels of its own answers"
    )
    template: str | None = Field(
        None, description='how a label becomes a hypothesis, {} being the label: "This text is about {}." without it'
    )
    multi_label: bool = Field(False, description="whether each of the labels given is judged by itself")
    model: ModelName = None


class EmbedRequest(OwnRequest):
    """Sentences to embed, and what they are for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sentences": _SENTENCES}]})

    sentences: list[Text] = Field(min_length=1, fail_fast=True)
    model: ModelName = None
    role: Role = Field("text", description="what they are for: the model's prompt for it, if it has one, is put before")


class ExplainRequest(OwnRequest):
    """Two sentences whose score is to be explained."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PAIR]})

    a: Text
    b: Text
    model: ModelName = None


class ModelAnswer(TypedDict):
    """The model that answered."""

    model: str


class Scored(TypedDict):
    """The score of one pair."""

    score: Annotated[float, Field(ge=0, le=1, description="calibrated similarity")]
    raw_score: Annotated[float, Field(description="as the model gives it")]
    rating: NotRequired[Annotated[float, Field(description="on the rating scale of the corpus, if the model has one")]]
    rating_scale: NotRequired[tuple[float, float]]


_LANGUAGE = (
    "where a text seems to be in a language that is none of the model's, that language with a question mark, such as "
    "`de?`: its scores mean little (docs/models.md)"
)
Hint = Annotated[str, Field(description=f"{_LANGUAGE}; absent else")]
_HINTS = Field(description=f"of each text, {_LANGUAGE}, else null; absent where all are null")


class SimilarityResult(Scored):
    """The answer for one pair."""

    tokens: Annotated[tuple[int, int], Field(description="tokens read of a and of b")]
    truncated: Annotated[tuple[bool, bool], Field(description="whether a and b were cut at the model's limit")]
    unknown: Annotated[
        tuple[Ratio, Ratio],
        Field(
            description="share of the words of a and of b outside the model's vocabulary; "
            "of a long text that is truncated, of the words that were read"
        ),
    ]
    language: NotRequired[Annotated[tuple[str | None, str | None], _HINTS]]


class SimilarityResponse(ModelAnswer):
    """One result for each pair, in the order of the request."""

    scale: Annotated[Scale, Field(description=SCALE)]
    results: list[SimilarityResult]


class RankResult(TypedDict):
    """The score of one candidate."""

    index: Annotated[int, Field(description="its position in the request")]
    score: Annotated[float, Field(ge=0, le=1, description="calibrated, on the scale of the model that scored it")]
    raw_score: Annotated[float, Field(description="as the model that scored it gives it; the order is by this")]
    stage: NotRequired[
        Annotated[Literal[1, 2], Field(description="which of the two stages placed and scored it; absent in one stage")]
    ]
    language: NotRequired[Hint]
    id: NotRequired[Annotated[str, Field(description="of the entry; absent where it has none")]]


class RankTruncated(TypedDict):
    """Texts that were cut at the model's token limit."""

    query: bool
    candidates: Annotated[list[int], Field(description="positions in the request")]


class RankResponse(ModelAnswer):
    """The candidates by their raw score, best first; of equal ones the earlier first.

    In two stages those that the second model ordered come first, then the others in the order of the first model.
    """

    scale: Annotated[Scale, Field(description=f"of `model`: {SCALE}")]
    results: Annotated[list[RankResult], Field(description="empty where `answered` is false")]
    answered: Annotated[
        bool, Field(description="false: the first is below `min_score` or `min_confidence`, so nothing is answered")
    ]
    confidence: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="the probability that the first candidate is right, and so that one of them is; null where "
            "none was fitted for these models, or there is one candidate alone (docs/faq.md)",
        ),
    ]
    truncated: RankTruncated
    language: NotRequired[Annotated[str, Field(description=f"of the query: {_LANGUAGE}; absent else")]]
    rerank_model: NotRequired[Annotated[str, Field(description="model of the second stage; absent in one stage")]]
    rerank_scale: NotRequired[Annotated[Scale, Field(description="likewise, of `rerank_model`")]]
    rerank_truncated: NotRequired[
        Annotated[RankTruncated, Field(description="what was cut at that model's token limit, of what it read")]
    ]


class Probabilities(TypedDict):
    """The probability of each label of the model; they sum to 1."""

    entailment: Ratio
    neutral: NotRequired[Ratio]
    contradiction: NotRequired[Ratio]
    not_entailment: NotRequired[
        Annotated[float, Field(ge=0, le=1, description="of a model of two labels: neutral or contradiction")]
    ]


class EntailmentResult(TypedDict):
    """The answer for one pair."""

    label: Annotated[EntailmentLabel, Field(description="the most probable one")]
    probabilities: Probabilities
    truncated: Annotated[tuple[bool, bool], Field(description="whether premise and hypothesis were cut")]
    language: NotRequired[Annotated[tuple[str | None, str | None], _HINTS]]
    index: NotRequired[
        Annotated[int, Field(description="of claims: position of the sentence that supports this one best")]
    ]
    sentence: NotRequired[Annotated[str, Field(description="that sentence; the label is what it says of the claim")]]


class EntailmentResponse(ModelAnswer):
    """One result for each pair, or each claim, in the order of the request."""

    results: list[EntailmentResult]


ClaimLabel = Literal["entailed", "contradicted", "not_stated"]


class ClaimPassage(TypedDict):
    """A sentence of a document, or two neighbours, and what it says of a claim."""

    document: Annotated[int, Field(description="its position in the request")]
    start: Annotated[int, Field(description="of its first character in the document, from 0, in code points")]
    end: Annotated[int, Field(description="after its last one")]
    text: Annotated[str, Field(description="without markup; of a table row its cells")]
    headings: Annotated[list[str], Field(description="that it stands under, outermost first; the line above a list")]
    label: Annotated[ClaimLabel, Field(description="what it says of the claim, most probably")]
    probability: Annotated[float, Field(ge=0, le=1, description="of that")]
    differences: Annotated[
        list[str], Field(description="numbers, dates and amounts of the claim that are others here: `3 is not 5`")
    ]


class ClaimProbabilities(TypedDict):
    """Of each label; they sum to 1."""

    entailed: Ratio
    contradicted: Ratio
    not_stated: Ratio


class ClaimResult(TypedDict):
    """The answer for one claim."""

    label: Annotated[ClaimLabel, Field(description="what the documents say of it")]
    confidence: Annotated[float, Field(ge=0, le=1, description="how probable that label is")]
    probabilities: ClaimProbabilities
    evidence: NotRequired[Annotated[ClaimPassage, Field(description="that says so; absent where nothing is stated")]]
    runner_up: Annotated[ClaimPassage, Field(description="what speaks most for another label that states something")]
    truncated: Annotated[bool, Field(description="whether the claim was cut at the model's limit")]
    language: NotRequired[Hint]


class ClaimsResponse(ModelAnswer):
    """One result for each claim, in the order of the request."""

    encoder: Annotated[str, Field(description="the model that found the passages")]
    results: list[ClaimResult]


class ClassifyResult(TypedDict):
    """The answer for one text."""

    label: Annotated[str, Field(description="the most probable one")]
    probabilities: Annotated[
        dict[str, Ratio], Field(description="of each label; they sum to 1, except where each was judged by itself")
    ]
    truncated: Annotated[bool, Field(description="whether the text, or a label in its template, was cut")]
    language: NotRequired[Hint]


class ClassifyResponse(ModelAnswer):
    """One result for each text, in the order of the request."""

    results: list[ClassifyResult]


class EmbedResponse(ModelAnswer):
    """One embedding for each sentence, in the order of the request."""

    dim: int
    embeddings: list[list[float]]
    truncated: Annotated[list[bool], Field(description="whether each sentence was cut at the model's limit")]
    language: NotRequired[Annotated[list[str | None], _HINTS]]


class TokensOfSentence(TypedDict):
    """A sentence as the model read it."""

    tokens: Annotated[
        list[str],
        Field(description="words; pieces of words, ## where one continues a word; <bucket n> for what no piece covers"),
    ]
    truncated: Annotated[bool, Field(description="whether it was cut at the model's limit")]
    language: NotRequired[Hint]


class Explained(TypedDict):
    """What an explanation shows, and the range of its numbers."""

    name: str
    description: str
    range: NotRequired[Annotated[tuple[float, float], Field(description="the lowest and highest value there can be")]]


class MatrixOfTokens(Explained):
    """A number for each token of a with each token of b."""

    values: Annotated[list[list[float]], Field(description="rows are the tokens of a, columns those of b")]


class VectorsOfTokens(Explained):
    """A number for each token of a, and one for each of b."""

    a: list[float | None]
    b: list[float | None]


class ExplainResponse(ModelAnswer, Scored):
    """The explanation of a score; docs/explaining.md says what each model shows."""

    a: TokensOfSentence
    b: TokensOfSentence
    matrices: list[MatrixOfTokens]
    vectors: list[VectorsOfTokens]


class FigureInfo(TypedDict):
    """One measured figure of a model."""

    task: str
    corpus: str
    split: str
    metric: str
    value: float
    rows: int


class ExplanationNames(TypedDict):
    """Names of the matrices and vectors in a model's explanations."""

    matrices: list[str]
    vectors: list[str]


class DomainInfo(TypedDict):
    """For what text one task of a model is."""

    task: str
    learnt_from: Annotated[list[str], Field(description="corpora whose labels taught it; empty: it learnt without")]
    elsewhere: Annotated[
        Literal["good", "chance", "unmeasured"],
        Field(description="on text of other kinds: good, at or near chance, or not measured; docs/models.md"),
    ]
    measured_on: Annotated[list[str], Field(description="the corpora of other kinds that say so")]


class ConfidenceInfo(TypedDict):
    """What makes `confidence` of a ranking: logistic regression of what the ranking looks like (docs/faq.md)."""

    model: str
    fingerprint: str
    rerank_model: Annotated[str | None, Field(description="null: of a ranking in one stage")]
    rerank_fingerprint: str | None
    rerank_top: int | None
    intercept: float
    weights: Annotated[dict[str, float], Field(description="of each feature of the ranking")]
    rows: Annotated[int, Field(description="questions that it was fitted on")]
    calibration_error: Annotated[float, Field(description="on questions of an FAQ that it was not fitted on")]
    fitted_by: str


class ModelInfo(TypedDict):
    """What one model can be asked, and how it was measured."""

    id: str
    title: str
    architecture: str
    family: Literal["siamese", "interaction"]
    tasks: Annotated[
        list[str],
        Field(description="similarity, entailment, paraphrase, relevance, classification, embedding, explanation"),
    ]
    default_for: Annotated[list[str], Field(description="routes that use it when no model is named")]
    dim: int | None
    max_tokens: int
    languages: Annotated[
        list[str] | None, Field(description="of the texts that it is for, as ISO 639 codes; null: not known")
    ]
    rating_scale: tuple[float, float] | None
    labels: Annotated[list[str] | None, Field(description="that POST /classify answers with; null: none of its own")]
    explanations: Annotated[ExplanationNames, Field(description="what POST /explain shows of it")]
    main: Annotated[bool, Field(description="one of those to choose from first; the others are also here")]
    open: Annotated[bool, Field(description="false: opened at its first request, which waits for that")]
    provider: Annotated[str | None, Field(description="cuda where CUDA runs its graphs, else cpu; null: not open")]
    cache: Annotated[list[str], Field(description="where vectors are kept: memory, redis; docs/caching.md")]
    fingerprint: str
    figures: Annotated[NotRequired[list[FigureInfo]], Field(description="with ?full=true")]
    domain: Annotated[NotRequired[list[DomainInfo]], Field(description="for what text each task is; with ?full=true")]
    confidence: Annotated[
        NotRequired[list[ConfidenceInfo]], Field(description="for which rankings POST /rank knows it; with ?full=true")
    ]


class LimitsInfo(TypedDict):
    """Limits of one request."""

    max_body_bytes: int
    max_pairs: int
    max_candidates: int
    max_sentences: int
    max_text_chars: int
    max_document_chars: int
    max_claims: int
    max_explained_tokens: int
    request_timeout_seconds: float


class RerankInfo(TypedDict):
    """Defaults of the second stage of /rank."""

    default_model: Annotated[str | None, Field(description="null: a request must name its rerank_model")]
    default_top: int


class ModelsResponse(TypedDict):
    """The served models, the defaults and the limits."""

    models: list[ModelInfo]
    defaults: Annotated[dict[str, str], Field(description="route -> model")]
    rerank: RerankInfo
    limits: LimitsInfo


class ReloadedModel(TypedDict):
    """The outcome of a reload for one model."""

    model: Annotated[str, Field(description="its id, or the name of its folder")]
    outcome: Literal["unchanged", "reloaded", "added", "removed", "failed"]
    fingerprint: Annotated[str | None, Field(description="of what the id means now; null where nothing is served")]
    reason: Annotated[str | None, Field(description="why it failed; the model served before stays")]


class ReloadReport(TypedDict):
    """The outcome of a reload."""

    status: Annotated[Literal["done", "failed"], Field(description="failed: of one model or more; others are swapped")]
    models: list[ReloadedModel]
    seconds: float


class Liveness(TypedDict):
    """The process is alive."""

    status: Literal["alive"]


class Readiness(TypedDict):
    """Whether requests should be sent here, and reasons if not."""

    status: Literal["ready", "degraded", "unready"]
    reasons: list[str]
    models: list[str]
    redis: Literal["off", "up", "down"]


class ErrorDetail(TypedDict):
    """What went wrong with a request."""

    code: str
    message: str
    field: Annotated[str | None, Field(description="where in the request, such as pairs.3.a")]
    limit: Annotated[int | None, Field(description="the number that was exceeded")]
    request_id: str


class ErrorResponse(TypedDict):
    """The body of every error."""

    error: ErrorDetail
