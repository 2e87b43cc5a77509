"""Cohere's `embed`: the requests of v1 and v2, and their answers."""

from typing import Annotated, Literal, NotRequired, cast

import numpy as np
from pydantic import ConfigDict, Field
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from core.manifest import Role
from service.errors import InvalidRequest
from service.routes.cohere import ApiVersion, TokenUsage
from service.routes.dialects import COHERE
from service.routes.fields import AllowedValues, ChangesAnswer, ForeignRequest, ModelName
from service.routes.foreign import Embedded, base64_of, embed, rows_of, values_of
from service.routes.limits import RequestTexts, Truncation
from service.routes.routing import ServedRequest, router_for
from service.schemas import Text, TextList

router = router_for(COHERE, "Cohere", "/cohere")
root = router_for(COHERE, "Cohere")

EmbeddingType = Annotated[
    Literal["float", "int8", "base64"],
    AllowedValues("float", "int8", "base64", refuses=("uint8",), says="embeddings are sent as float, int8 or base64"),
]
_ROLES: dict[str, Role] = {"search_query": "query", "search_document": "passage"}
_Types = Annotated[list[EmbeddingType], Field(min_length=1, max_length=3, fail_fast=True)]
_INPUT_TYPE = AllowedValues(
    None,
    *_ROLES,
    "classification",
    "clustering",
    changes=("search_query",),
    refuses=("image", "search"),
    says=f"input_type is {', '.join(_ROLES)} (with the model's prompt for it), classification or clustering; "
    "images are not supported, send texts",
)
_NO_IMAGES = AllowedValues(
    None, [], refuses=(["data:image/png;base64,AA=="],), says="images are not supported, send texts"
)


class CohereEmbedV1Request(ForeignRequest):
    """Texts to embed, in the form of version 1."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"texts": ["A man plays a guitar."], "input_type": "search_document"}]}
    )

    texts: TextList | None = None
    model: ModelName = None
    input_type: Annotated[str | None, _INPUT_TYPE] = None
    embedding_types: Annotated[_Types | None, ChangesAnswer(["int8"], refuses=(["uint8"], ["binary"], ["ubinary"]))] = (
        None
    )
    truncate: Annotated[
        Literal["NONE", "START", "END"] | None,
        ChangesAnswer("NONE", "START", note="START only where nothing is cut"),
    ] = Field("END", description="null, as LangChain sends it: END")
    output_dimension: Annotated[int | None, ChangesAnswer(2)] = Field(
        None, ge=1, description="how many numbers to keep, the first ones"
    )
    max_tokens: Annotated[int | None, ChangesAnswer(3)] = Field(None, ge=1, description="cut texts to this many tokens")
    images: Annotated[list[str] | None, _NO_IMAGES] = None

    def read(self) -> RequestTexts:
        """The texts, and how they may be cut.

        Raises:
            InvalidRequest: there are none.
        """
        if self.texts is None:
            raise InvalidRequest("expected at least one text", field="texts")
        return RequestTexts.of("texts", self.texts, self._cutting())

    def _cutting(self) -> Truncation:
        return Truncation(self.truncate != "NONE", keep_end=self.truncate == "START", tokens=self.max_tokens)


class ContentPart(ForeignRequest):
    """A part of what is to be embedded."""

    type: Literal["text"]
    text: Text


class EmbedInput(ForeignRequest):
    """A text to embed, in parts."""

    content: list[ContentPart] = Field(min_length=1, fail_fast=True, description="one part, of type text")


class CohereEmbedV2Request(CohereEmbedV1Request):
    """Texts to embed, as `texts` or as `inputs`."""

    inputs: list[EmbedInput] | None = Field(None, min_length=1, fail_fast=True)

    def read(self) -> RequestTexts:
        """The texts of `texts`, or else of `inputs`; raises as in version 1, or if an input has several parts."""
        if self.inputs is None:
            return super().read()
        if self.texts is not None:
            raise InvalidRequest("expected either texts or inputs", field="inputs")
        for i, each in enumerate(self.inputs):
            if len(each.content) != 1:
                raise InvalidRequest("expected one part, a text", field=f"inputs.{i}.content")
        return RequestTexts(
            [each.content[0].text for each in self.inputs], "inputs.{}.content.0.text".format, self._cutting()
        )


class ByType(TypedDict):
    """Embeddings of length 1 of all texts, in each type that was asked for."""

    float: NotRequired[list[list[float]]]
    int8: NotRequired[
        Annotated[list[list[int]], Field(description="each embedding scaled to -127..127: compare by the cosine")]
    ]
    base64: NotRequired[Annotated[list[str], Field(description="little-endian float32")]]


class BilledTokens(TypedDict):
    """As Cohere would count; nothing is billed here."""

    input_tokens: int


class EmbedMeta(TypedDict):
    """Cohere's metadata of an answer with embeddings."""

    api_version: ApiVersion
    billed_units: BilledTokens
    tokens: TokenUsage
    warnings: NotRequired[Annotated[list[str], Field(description="one for each text that was cut")]]


class EmbedFloatsResponse(TypedDict):
    """Version 1 without `embedding_types`: an embedding for each text, in the order of the request."""

    response_type: Literal["embeddings_floats"]
    id: str
    embeddings: list[list[float]]
    texts: list[str]
    meta: EmbedMeta


class EmbedByTypeResponse(TypedDict):
    """Embeddings by type, each list in the order of the request."""

    response_type: Literal["embeddings_by_type"]
    id: str
    embeddings: ByType
    texts: list[str]
    meta: EmbedMeta


@router.post("/v1/embed", summary="Embed texts", response_model=EmbedFloatsResponse | EmbedByTypeResponse)
async def embed_v1(request: CohereEmbedV1Request, call: ServedRequest) -> Response:
    """Give the embedding of each text, by types where some are asked for."""
    texts = request.read()
    found = await _embed(call, request, texts)
    if request.embedding_types is not None:
        return await _answer_by_type(call, found, texts, request.embedding_types, "1")

    def make() -> EmbedFloatsResponse:
        return {
            "response_type": "embeddings_floats",
            "id": call.request_state.id,
            "embeddings": rows_of(found.embeddings),
            "texts": list(texts.texts),
            "meta": _meta(found, "1"),
        }

    return await call.answer(found.model, values_of(found.embeddings), make)


@root.post("/v2/embed", summary="Embed texts", response_model=EmbedByTypeResponse)
@router.post("/v2/embed", summary="Embed texts", response_model=EmbedByTypeResponse)
async def embed_v2(request: CohereEmbedV2Request, call: ServedRequest) -> Response:
    """Give the embedding of each text in each type, as numbers where none is asked for."""
    texts = request.read()
    found = await _embed(call, request, texts)
    return await _answer_by_type(call, found, texts, request.embedding_types or ["float"], "2")


async def _embed(call: ServedRequest, request: CohereEmbedV1Request, texts: RequestTexts) -> Embedded:
    call.check_count(texts.field, len(texts.texts), "max_sentences")
    role = _ROLES.get(request.input_type or "", "text")
    return await embed(
        *(call.context, call.service, request.model, texts),
        unit=True,
        dimensions=request.output_dimension,
        role=role,
        dimensions_field="output_dimension",
    )


async def _answer_by_type(
    call: ServedRequest, found: Embedded, texts: RequestTexts, types: list[EmbeddingType], version: str
) -> Response:
    def make() -> EmbedByTypeResponse:
        return {
            "response_type": "embeddings_by_type",
            "id": call.request_state.id,
            "embeddings": _by_type(found, types),
            "texts": list(texts.texts),
            "meta": _meta(found, version),
        }

    return await call.answer(found.model, len(types) * values_of(found.embeddings), make)


def _by_type(found: Embedded, types: list[EmbeddingType]) -> ByType:
    embeddings: ByType = {}
    if "float" in types:
        embeddings["float"] = rows_of(found.embeddings)
    if "int8" in types:
        largest = np.abs(found.embeddings).max(axis=1, keepdims=True)
        largest[largest == 0] = 1  # zeros stay zeros
        embeddings["int8"] = cast(list[list[int]], list(np.rint(found.embeddings * (127 / largest)).astype(np.int8)))
    if "base64" in types:
        embeddings["base64"] = base64_of(found.embeddings)
    return embeddings


def _meta(found: Embedded, version: str) -> EmbedMeta:
    meta: EmbedMeta = {
        "api_version": {"version": version},
        "billed_units": {"input_tokens": found.tokens},
        "tokens": {"input_tokens": found.tokens, "output_tokens": 0},
    }
    if found.warnings:
        meta["warnings"] = found.warnings
    return meta
