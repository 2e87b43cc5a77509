"""OpenAI: `/v1/embeddings` and `/v1/models`.

Embeddings have length 1, as OpenAI's have, because clients compare them by their inner product.
"""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from core.manifest import Role
from service.engine.context import RequestContext
from service.errors import (
    InvalidRequest,
    Overloaded,
    RateLimited,
    RequestError,
    TooLarge,
    Unauthorized,
    UnknownModel,
    UnsupportedField,
)
from service.models.model import ServedModel
from service.routes.dialects.fields import (
    Activation,
    AllowedValues,
    Changes,
    ForeignRequest,
    ModelName,
    NoPadding,
    NoProcessor,
    OneOrMany,
    TruncateTokens,
    TruncationSide,
    Usage,
    usage,
)
from service.routes.dialects.scoring import DialectContext, rows_of
from service.routes.operation import Dialect, Operation, ReadOperation, full_message
from service.routes.texts import RequestTexts, Truncation

_ROLES: dict[str, Role] = {"retrieval.query": "query", "retrieval.passage": "passage"}
_CODES: dict[type[RequestError], str] = {
    Unauthorized: "invalid_api_key",
    UnknownModel: "model_not_found",
    Overloaded: "rate_limit_exceeded",
    RateLimited: "rate_limit_exceeded",
}


class OpenAIErrorDetail(TypedDict):
    """What went wrong, as OpenAI's clients read it."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: Annotated[str | None, Field(description="where in the request")]
    code: str


class OpenAIError(TypedDict):
    """The body of an error in OpenAI's form."""

    error: OpenAIErrorDetail


def _body(error: RequestError, status: int, _: str) -> Mapping[str, object]:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    code = _CODES.get(type(error), error.code)
    return {"error": {"message": full_message(error), "type": kind, "param": error.field, "code": code}}


OPENAI = Dialect("OpenAI", _body, OpenAIError, {InvalidRequest: 400, TooLarge: 400, UnsupportedField: 422})


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


class EmbeddingsRequest(ForeignRequest):
    """Texts to embed, in OpenAI's form."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ["A man plays a guitar."]}]})

    input: OneOrMany
    model: ModelName = None
    encoding_format: Annotated[str | None, _AS] = "float"
    embedding_type: Annotated[str | None, _AS] = None
    dimensions: Annotated[int | None, Changes(2)] = Field(
        None, ge=1, description="how many numbers to keep, the first ones"
    )
    task: Annotated[str | None, _TASK] = None
    truncate: Annotated[
        bool | Literal["NONE", "END", "START"] | None,
        Changes(False, "NONE", "START", note="START only where nothing is cut"),
    ] = Field(None, description="of Jina or NVIDIA; false and NONE: a text that would be cut is refused")
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
    padding: NoPadding = None
    mm_processor_kwargs: NoProcessor = None
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


def operations(scoring: DialectContext) -> list[Operation]:
    """The requests of this dialect."""

    async def embeddings(request: EmbeddingsRequest, context: RequestContext) -> tuple[str, EmbeddingsResponse]:
        return await embeddings_of(context, scoring, request)

    registry = scoring.service.registry

    def describe(name: str, model: ServedModel) -> ModelItem:
        created = datetime.combine(model.manifest.provenance.created, time(), UTC)
        return {
            "id": name,
            "object": "model",
            "created": int(created.timestamp()),
            "owned_by": "semblance",
            "root": model.release.id,
        }

    async def list_models() -> ModelList:
        names = {**registry, **{alias: registry[name] for alias, name in scoring.aliases.items()}}
        return {"object": "list", "data": [describe(name, model) for name, model in names.items()]}

    async def retrieve_model(model: str) -> ModelItem:
        return describe(model, scoring.find(model))

    return [
        # The second path as TEI and infinity have it.
        *(Operation(path, embeddings, OPENAI, "Embed texts") for path in ("/v1/embeddings", "/embeddings")),
        ReadOperation("/v1/models", list_models, OPENAI, "Every name that `model` may have"),
        ReadOperation("/v1/models/{model}", retrieve_model, OPENAI, "One model"),
    ]


async def embeddings_of(
    context: RequestContext, scoring: DialectContext, request: EmbeddingsRequest
) -> tuple[str, EmbeddingsResponse]:
    """Embed texts: the model that answered, and the answer.

    Raises:
        RequestError: too many texts, and what `DialectContext.embed` raises.
    """
    if isinstance(request.input, list):
        scoring.limits.check_count("input", len(request.input), "max_sentences")
    cutting = Truncation.to(
        request.truncate_prompt_tokens,
        keep_end=request.truncation_side == "left" or request.truncate == "START",
        allowed=request.truncate not in (False, "NONE"),
    )
    texts, role = RequestTexts.of("input", request.input, cutting), _ROLES.get(request.task or "", "text")
    unit = False not in (request.normalized, request.normalize, request.use_activation)
    found = await scoring.embed(context, request.model, texts, unit=unit, dimensions=request.dimensions, role=role)
    rows: Sequence[list[float] | str] = (
        [base64.b64encode(row.tobytes()).decode() for row in found.embeddings.astype("<f4")]
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
    return found.model, response
