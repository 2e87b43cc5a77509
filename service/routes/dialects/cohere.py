"""Cohere: `rerank`, `embed` and `tokenize`, as `cohere.Client` and `cohere.ClientV2` post to them.

Jina's and vLLM's clients post to `/v1/rerank` too; its answers and errors hold the fields of all three.
"""

from collections.abc import Mapping

from pydantic import ConfigDict
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.engine.context import RequestContext
from service.errors import RequestError
from service.routes.dialects.embedding import (
    CohereEmbedV1Request,
    CohereEmbedV2Request,
    EmbedByTypeResponse,
    EmbedFloatsResponse,
    embed_v1,
    embed_v2,
)
from service.routes.dialects.fields import ForeignRequest, ModelName
from service.routes.dialects.jina import JINA, JinaError
from service.routes.dialects.reranking import ApiVersion, RerankRequest, RerankResponse, rerank
from service.routes.dialects.scoring import DialectContext
from service.routes.operation import Dialect, Operation, full_message
from service.routes.texts import RequestTexts
from service.schemas import Text


class CohereError(TypedDict):
    """The body of an error in Cohere's form."""

    id: str
    message: str


class CohereTokenizeRequest(ForeignRequest):
    """A text to cut into tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "A man plays a guitar."}]})

    text: Text
    model: ModelName = None


class CohereTokens(TypedDict):
    """The tokens that the model reads."""

    tokens: list[int]
    token_strings: list[str]
    meta: dict[str, ApiVersion]


class CohereOrJinaError(JinaError):
    """The error bodies of Cohere, Jina and vLLM in one."""

    id: str


def _body(error: RequestError, _: int, request_id: str) -> Mapping[str, object]:
    return {"id": request_id, "message": full_message(error)}


def _both(error: RequestError, status: int, request_id: str) -> Mapping[str, object]:
    return {**_body(error, status, request_id), **JINA.body(error, status, request_id)}


COHERE = Dialect("Cohere", _body, CohereError, JINA.statuses)
COHERE_OR_JINA = Dialect("Cohere v1, Jina, vLLM", _both, CohereOrJinaError, JINA.statuses)


def operations(scoring: DialectContext) -> list[Operation]:
    """The POST requests of this dialect."""

    async def rerank_v1(request: RerankRequest, context: RequestContext) -> tuple[str, RerankResponse]:
        return await rerank(context, scoring, request, "1")

    async def rerank_v2(request: RerankRequest, context: RequestContext) -> tuple[str, RerankResponse]:
        return await rerank(context, scoring, request, "2")

    async def embed_texts_v1(
        request: CohereEmbedV1Request, context: RequestContext
    ) -> tuple[str, EmbedFloatsResponse | EmbedByTypeResponse]:
        return await embed_v1(context, scoring, request)

    async def embed_texts_v2(request: CohereEmbedV2Request, context: RequestContext) -> tuple[str, EmbedByTypeResponse]:
        return await embed_v2(context, scoring, request)

    async def tokenize(request: CohereTokenizeRequest, context: RequestContext) -> tuple[str, CohereTokens]:
        scorer, (read,) = await scoring.tokenise(context, request.model, RequestTexts.of("text", request.text))
        meta: dict[str, ApiVersion] = {"api_version": {"version": "1"}}
        return scorer.id, {"tokens": list(read.ids), "token_strings": scorer.tokens(read), "meta": meta}

    return [
        Operation("/v1/rerank", rerank_v1, COHERE_OR_JINA, "Order documents"),
        Operation("/v2/rerank", rerank_v2, COHERE, "Order documents"),
        Operation("/v1/embed", embed_texts_v1, COHERE, "Embed texts"),
        Operation("/v2/embed", embed_texts_v2, COHERE, "Embed texts"),
        Operation("/v1/tokenize", tokenize, COHERE, "Cut a text into tokens"),
    ]
