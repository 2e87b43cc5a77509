"""OpenAI: `/openai/v1/embeddings` and `/openai/v1/models`, on the root too; and `score`, which is vLLM's.

vLLM serves OpenAI's routes, and `score` beside them: its clients have one base address for both, and read OpenAI's
errors.

Embeddings have length 1, as OpenAI's have, because clients compare them by their inner product. Unlike in vLLM, a text
that is longer than the model's limit is cut, and the answer says so.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from datetime import time as time_of_day
from typing import Annotated, Literal, NotRequired

from pydantic import AliasChoices, ConfigDict, Field
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from core.manifest import Role
from service.errors import InvalidRequest, amount
from service.models.model import ServedModel
from service.observe.logs import REQUEST_ID
from service.routes.dialects import OPENAI
from service.routes.fields import (
    Activation,
    AllowedValues,
    ChangesAnswer,
    ForeignRequest,
    ModelName,
    OneOrMany,
    Truncate,
    TruncateTokens,
    TruncationSide,
    Usage,
    usage,
)
from service.routes.foreign import base64_of, compare, embed, meant, rows_of, values_of
from service.routes.limits import RequestTexts, Truncation
from service.routes.routing import JsonAnswer, ServedRequest, router_for

router = router_for(OPENAI, "OpenAI", "/openai")
# Where OpenAI's clients look by themselves: nothing of ours stands there.
root = router_for(OPENAI, "OpenAI")
_FIRST = AliasChoices("text_1", "data_1", "queries")
_SECOND = AliasChoices("text_2", "data_2", "documents", "items")
_ROLES: dict[str, Role] = {"retrieval.query": "query", "retrieval.passage": "passage"}
_INPUT_TYPES: dict[str, Role] = {"query": "query", "passage": "passage", "document": "passage"}

_AS = AllowedValues(
    None,
    "float",
    "base64",
    changes=("base64",),
    refuses=("bytes", "binary", "ubinary"),
    says="embeddings are sent as float or base64",
)
# Jina's tasks, and vLLM's of an embedding; those without a prompt of ours are embedded as texts of no side.
_TASK = AllowedValues(
    None,
    *_ROLES,
    "text-matching",
    "classification",
    "clustering",
    "separation",
    "embed",
    changes=("retrieval.query",),
    refuses=("classify", "token_embed", "code.query"),
    says=f"the tasks are {', '.join(_ROLES)} (with the model's prompt for it), text-matching, classification, "
    "clustering, separation and embed",
)


_INPUT_TYPE = AllowedValues(
    None,
    *_INPUT_TYPES,
    changes=("query",),
    refuses=("classification", "search_query"),
    says=f"input_type is {', '.join(_INPUT_TYPES)}, each with the model's prompt for it",
)


class EmbeddingsRequest(ForeignRequest):
    """Texts to embed, in OpenAI's form."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ["A man plays a guitar."]}]})

    input: OneOrMany
    model: ModelName = None
    encoding_format: Annotated[str | None, _AS] = "float"
    embedding_type: Annotated[str | None, _AS] = None
    dimensions: Annotated[int | None, ChangesAnswer(2)] = Field(
        None, ge=1, description="how many numbers to keep, the first ones"
    )
    task: Annotated[str | None, _TASK] = None
    input_type: Annotated[str | None, _INPUT_TYPE] = Field(None, description="of NVIDIA and Voyage, instead of task")
    truncate: Truncate = None
    truncation: Annotated[bool | None, ChangesAnswer(False)] = Field(None, description="the same, as Voyage calls it")
    truncate_prompt_tokens: TruncateTokens = None
    truncation_side: TruncationSide = None
    normalized: Activation = Field(None, description="Jina; false: embeddings are not divided by their lengths")
    normalize: Activation = Field(None, description="the same, as vLLM called it before")
    use_activation: Activation = Field(None, description="the same, as vLLM calls it")
    late_chunking: Annotated[
        bool | None, AllowedValues(None, False, refuses=(True,), says="each text is embedded by itself")
    ] = None
    return_multivector: Annotated[
        bool | None, AllowedValues(None, False, refuses=(True,), says="a text has one embedding")
    ] = None
    embed_dtype: Annotated[
        str | None, AllowedValues(None, "float32", refuses=("float16",), says="numbers are sent as float32")
    ] = None
    endianness: Annotated[
        str | None, AllowedValues(None, "native", "little", refuses=("big",), says="base64 holds little-endian numbers")
    ] = None
    add_special_tokens: Annotated[
        bool | None, AllowedValues(None, True, refuses=(False,), says="the model's graph adds its special tokens")
    ] = None
    output_dtype: Annotated[
        str | None, AllowedValues(None, "float", refuses=("int8", "binary"), says="numbers are sent as float32")
    ] = None
    output_dimension: Annotated[
        int | None, AllowedValues(None, refuses=(2,), says="the number of dimensions is asked for by dimensions")
    ] = None
    modality: Annotated[str | None, AllowedValues(None, "text", refuses=("image",), says="only texts are embedded")] = (
        None
    )


class EmbeddingItem(TypedDict):
    """The embedding of one text."""

    object: Literal["embedding"]
    index: int
    embedding: Annotated[list[float] | str, Field(description="numbers, or base64 of little-endian float32")]


class EmbeddingsResponse(TypedDict):
    """One embedding of length 1 for each text, in the order of the request."""

    object: Literal["list"]
    data: list[EmbeddingItem]
    model: str
    usage: Usage
    warnings: NotRequired[Annotated[list[str], Field(description="one for each text that was cut")]]


class ModelItem(TypedDict):
    """One model, or another name of one."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: Literal["semblance"]
    root: Annotated[str, Field(description="the model that answers under this name")]


class ModelList(TypedDict):
    """Every name that `model` may have."""

    object: Literal["list"]
    data: list[ModelItem]


class ScoreRequest(ForeignRequest):
    """Pairs to score: one text and one, one and many, or as many as many."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text_1": "A man plays.", "text_2": ["Someone plays.", "A dog runs."]}]}
    )

    text_1: OneOrMany = Field(validation_alias=_FIRST)
    text_2: OneOrMany = Field(validation_alias=_SECOND)
    model: ModelName = None
    max_tokens_per_query: Annotated[int | None, ChangesAnswer(1)] = Field(None, ge=0, description="of text_1; 0: all")
    max_tokens_per_doc: Annotated[int | None, ChangesAnswer(1)] = Field(None, ge=0, description="of text_2; 0: all")
    truncate_prompt_tokens: TruncateTokens = None
    truncation_side: TruncationSide = None
    use_activation: Activation = Field(None, description="false: the model's own score, not calibrated")
    activation: Activation = Field(None, description="the same, as vLLM called it before")
    softmax: Activation = Field(None, description="the same, as vLLM called it before")


class Score(TypedDict):
    """The score of one pair."""

    index: int
    object: Literal["score"]
    score: float


class ScoreResponse(TypedDict):
    """The pairs, in the order of the request."""

    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[Score]
    usage: Usage
    warnings: NotRequired[Annotated[list[str], Field(description="one for each text that was cut")]]


@root.post("/v1/embeddings", summary="Embed texts", response_model=EmbeddingsResponse)
@router.post("/v1/embeddings", summary="Embed texts", response_model=EmbeddingsResponse)
async def embeddings(request: EmbeddingsRequest, call: ServedRequest) -> Response:
    """Give one embedding of length 1 for each text."""
    service, context = call.service, call.context
    if isinstance(request.input, list):
        call.check_count("input", len(request.input), "max_sentences")
    cutting = Truncation.to(
        request.truncate_prompt_tokens,
        keep_end=request.truncation_side == "left" or request.truncate == "START",
        allowed=request.truncate not in (False, "NONE") and request.truncation is not False,
    )
    if request.input_type is not None and request.task is not None:
        raise InvalidRequest("task says it already: send one of the two", field="input_type")
    role = _ROLES.get(request.task or "") or _INPUT_TYPES.get(request.input_type or "", "text")
    texts = RequestTexts.of("input", request.input, cutting)
    unit = False not in (request.normalized, request.normalize, request.use_activation)
    found = await embed(context, service, request.model, texts, unit=unit, dimensions=request.dimensions, role=role)

    def make() -> EmbeddingsResponse:
        rows: Sequence[list[float] | str] = (
            base64_of(found.embeddings)
            if "base64" in (request.encoding_format, request.embedding_type)
            else rows_of(found.embeddings)
        )
        response: EmbeddingsResponse = {
            "object": "list",
            "data": [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)],
            "model": found.model,
            "usage": usage(found.tokens),
        }
        if found.warnings:
            response["warnings"] = found.warnings
        return response

    return await call.answer(found.model, values_of(found.embeddings), make)


@router.post("/v1/score", summary="Score pairs, as vLLM does", response_model=ScoreResponse)
async def score(request: ScoreRequest, call: ServedRequest) -> Response:
    """Score one text and one, one and many, or as many as many."""
    service, context, left = call.service, call.context, request.truncation_side == "left"
    sent = await call.json()
    named = [[str(name) for name in names.choices if name in sent] for names in (_FIRST, _SECOND)]
    for name, *others in named:
        if others:
            raise InvalidRequest(f"{name} says it already: send one of the two", field=others[0])
    a, b = (
        RequestTexts.of(
            name,
            texts,
            Truncation.to(own or None, request.truncate_prompt_tokens, keep_end=left),
        )
        for (name,), texts, own in (
            (named[0], request.text_1, request.max_tokens_per_query),
            (named[1], request.text_2, request.max_tokens_per_doc),
        )
    )
    call.check_count(b.field, len(b.texts), "max_pairs")
    if len(a.texts) not in (1, len(b.texts)):
        raise InvalidRequest(
            f"{amount(len(a.texts), 'texts')} beside {len(b.texts)} in {b.field}: expected one, or as many",
            field=a.field,
        )
    raw = False in (request.use_activation, request.activation, request.softmax)
    found = await compare(context, service, "/similarity", request.model, a, b, raw=raw)
    response: ScoreResponse = {
        "id": f"score-{REQUEST_ID.get()}",
        "object": "list",
        "created": int(time.time()),
        "model": found.model,
        "data": [{"index": i, "object": "score", "score": value} for i, value in enumerate(found.scores)],
        "usage": usage(found.tokens),
    }
    if found.warnings:
        response["warnings"] = found.warnings
    return JsonAnswer(response, found.model)


@root.get("/v1/models", summary="Every name that `model` may have", response_model=ModelList)
@router.get("/v1/models", summary="Every name that `model` may have", response_model=ModelList)
async def list_models(call: ServedRequest) -> Response:
    """List the models and their aliases."""
    service = call.service
    registry = service.registry
    names = {**registry, **{alias: registry[name] for alias, name in service.settings.model_aliases.items()}}
    return JsonAnswer({"object": "list", "data": [_describe(name, model) for name, model in names.items()]})


# An alias may be a name of the hub, with a slash.
@root.get("/v1/models/{model:path}", summary="One model", response_model=ModelItem)
@router.get("/v1/models/{model:path}", summary="One model", response_model=ModelItem)
async def retrieve_model(model: str, call: ServedRequest) -> Response:
    """Describe the model that answers under a name."""
    service = call.service
    found = service.registry.find(meant(service, model) or model, "similarity")  # without a name there is none
    return JsonAnswer(_describe(model, found))


def _describe(name: str, model: ServedModel) -> ModelItem:
    created = datetime.combine(model.manifest.provenance.created, time_of_day(), UTC)
    return {
        "id": name,
        "object": "model",
        "created": int(created.timestamp()),
        "owned_by": "semblance",
        "root": model.release.id,
    }
