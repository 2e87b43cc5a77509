"""Types of request and answer bodies. Request types also hold the examples that /docs shows.

Requests are pydantic models: an unknown or mistyped field is an error. Answers are dicts, with the fields of the types
in `core/answers.py` and `core/status.py`, of which the OpenAPI document is made here. Endpoints check lengths of lists
and texts.
"""

import dataclasses
from dataclasses import MISSING
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue, PlainValidator, with_config
from pydantic_core import CoreSchema, PydanticCustomError
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from core import answers, status
from core.answers import Scale
from core.manifest import Role, ScoreTask
from core.ranking import MAX_ENTRIES, ConfidenceFit, Match

ModelName = Annotated[
    str | None,
    Field(description="which model answers; without it, the default one (see GET /models)"),
]
Ratio = Annotated[float, Field(ge=0, le=1)]
SCALES: dict[ScoreTask, Scale] = {
    "similarity": "similarity",
    "paraphrase": "paraphrase_probability",
    "relevance": "relevance_probability",
}
_PAIR: JsonValue = {"a": "A man is playing a guitar.", "b": "Someone plays an instrument."}
_PREMISE: JsonValue = {"premise": "Two dogs are running through a field.", "hypothesis": "Some animals are outdoors."}
_SENTENCES: JsonValue = ["A man is playing a guitar.", "Someone plays an instrument."]


# The least length is documented and not checked here: the tokenizer decides what is empty, which has its own error.
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


# Pairs and entries are dicts, not models: a request may have many, and an object with two more of pydantic's own costs
# more memory than its texts. In these dicts an unknown field is an error too.
_forbids_extra = with_config(ConfigDict(extra="forbid", strict=True))


@_forbids_extra
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


@_forbids_extra
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
    entries: Annotated[list[Entry], Field(min_length=1, max_length=MAX_ENTRIES, fail_fast=True)] | None = Field(
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
        None,
        description="a second model, whose scores and the first one's order the best again; any with similarity (see "
        "GET /models)",
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
        None,
        description="likewise, where `confidence` is lower; refused where there is none. Without it and `min_score` "
        "the fit's own `threshold` decides",
    )
    confidence_fit: ConfidenceFit | None = Field(
        None, description="what `semblance choose --faq` found for your own FAQ, in the place of the model's own"
    )


@_forbids_extra
class PremiseAndHypothesis(TypedDict):
    """Does the premise entail the hypothesis?"""

    premise: Text
    hypothesis: Text


class EntailmentRequest(OwnRequest):
    """Pairs of premise and hypothesis to label."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pairs": [_PREMISE]}]})

    pairs: list[PremiseAndHypothesis] = Field(
        min_length=1, fail_fast=True, description="claims about a document are asked of /claims"
    )
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


class DedupeRequest(OwnRequest):
    """Texts, some of which may say the same."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"texts": ["How do I reset my password?", "how do i reset my password", "My parcel 4711 is late."]},
            ]
        }
    )

    texts: TextList = Field(description="at most 2,000")
    model: str | None = Field(
        None, description="whose embeddings find the nearest texts; without it the default one of /embed"
    )
    pair_model: str | None = Field(
        None,
        description="which model reads near pairs; one with paraphrase and entailment. Without it the default one of "
        "/entailment, if it has both; else cosines decide",
    )
    guard: bool = Field(True, description="keep texts apart that differ in a fact: a number, a size, a 'not'")


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


class AnswerForm(NamedTuple):
    """Describes dicts as an answer of core/, for the OpenAPI document."""

    answer: type
    name: str = ""  # in the document; without it the answer's own

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of a typed dict with the answer's fields."""
        return handler.generate_schema(typed_dict(self.answer, self.name))


@cache
def typed_dict(answer: Any, name: str = "") -> Any:
    """An answer as it is sent: what has a default may be absent, and is not null."""
    hints, fields = get_type_hints(answer, include_extras=True), {}
    for each in dataclasses.fields(answer):
        hint, required = hints[each.name], each.metadata.get("always", False)
        if each.default is None and type(None) in get_args(hint):
            (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
        absent = each.default is not MISSING or each.default_factory is not MISSING
        fields[each.name] = NotRequired[_as_sent(hint)] if absent and not required else _as_sent(hint)
    made = TypedDict(name or answer.__name__, fields)  # type: ignore[misc]  # a name that is no literal
    made.__doc__ = answer.__doc__
    return made


def _as_sent(hint: Any) -> Any:
    """A type with the answers in it as typed dicts."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return typed_dict(hint)
    if get_origin(hint) is Annotated:
        return Annotated[_as_sent(get_args(hint)[0]), *hint.__metadata__]
    return list[_as_sent(get_args(hint)[0])] if get_origin(hint) is list else hint  # type: ignore[misc]


# Answers are dicts, which are built and written in a fraction of the time of objects.
Answer = dict[str, Any]
SimilarityResponse = Annotated[Answer, AnswerForm(answers.Similarities, "SimilarityResponse")]
RankResponse = Annotated[Answer, AnswerForm(answers.Ranking, "RankResponse")]
EntailmentResponse = Annotated[Answer, AnswerForm(answers.Entailments, "EntailmentResponse")]
ClaimsResponse = Annotated[Answer, AnswerForm(answers.Claims, "ClaimsResponse")]
DuplicatesResponse = Annotated[Answer, AnswerForm(answers.Duplicates, "DedupeResponse")]
ClassifyResponse = Annotated[Answer, AnswerForm(answers.Labels, "ClassifyResponse")]
EmbedResponse = Annotated[Answer, AnswerForm(answers.EmbedResponse)]
ExplainResponse = Annotated[Answer, AnswerForm(answers.Explanation, "ExplainResponse")]
ModelsResponse = Annotated[Answer, AnswerForm(status.Models, "ModelsResponse")]
Readiness = Annotated[Answer, AnswerForm(status.Readiness)]


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
