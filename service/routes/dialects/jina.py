"""Jina and vLLM: `/rerank` with `documents`, vLLM's `/score`. (`/v1/rerank` is in `cohere.py`.)

Unlike in vLLM, a text that is longer than the model's limit is cut, and the answer says so.
"""

import time
from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired

from pydantic import AliasChoices, ConfigDict, Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.engine.context import RequestContext
from service.errors import InvalidRequest, RequestError, amount
from service.observe.logs import REQUEST_ID
from service.routes.dialects.fields import (
    Activation,
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
from service.routes.dialects.openai import OPENAI, OpenAIError
from service.routes.dialects.reranking import RerankRequest, RerankResponse, rerank
from service.routes.dialects.scoring import DialectContext
from service.routes.operation import Dialect, Operation, full_message
from service.routes.texts import RequestTexts, Truncation


class JinaError(OpenAIError):
    """vLLM's nested error, and the plain texts that clients of Jina, vLLM and Cohere read."""

    message: str
    detail: str


def _body(error: RequestError, status: int, request_id: str) -> Mapping[str, object]:
    return {**OPENAI.body(error, status, request_id), "message": full_message(error), "detail": full_message(error)}


JINA = Dialect("Jina / vLLM", _body, JinaError, OPENAI.statuses)


class ScoreRequest(ForeignRequest):
    """Pairs to score: one text and one, one and many, or as many as many."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text_1": "A man plays.", "text_2": ["Someone plays.", "A dog runs."]}]}
    )

    text_1: OneOrMany = Field(validation_alias=AliasChoices("text_1", "data_1", "queries"))
    text_2: OneOrMany = Field(validation_alias=AliasChoices("text_2", "data_2", "documents", "items"))
    model: ModelName = None
    truncate_prompt_tokens: TruncateTokens = None
    truncation_side: TruncationSide = None
    use_activation: Activation = Field(None, description="false: the model's own score, not calibrated")
    activation: Activation = Field(None, description="the same, as vLLM called it before")
    softmax: Activation = Field(None, description="the same, as vLLM called it before")
    padding: NoPadding = None
    mm_processor_kwargs: NoProcessor = None


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


def operations(scoring: DialectContext) -> list[Operation]:
    """The POST requests of this dialect."""

    async def rerank_documents(request: RerankRequest, context: RequestContext) -> tuple[str, RerankResponse]:
        return await rerank(context, scoring, request, "1")

    async def score(request: ScoreRequest, context: RequestContext) -> tuple[str, ScoreResponse]:
        cutting = Truncation.to(request.truncate_prompt_tokens, keep_end=request.truncation_side == "left")
        a, b = RequestTexts.of("text_1", request.text_1, cutting), RequestTexts.of("text_2", request.text_2, cutting)
        scoring.limits.check_count("text_2", len(b.texts), "max_pairs")
        if len(a.texts) not in (1, len(b.texts)):
            raise InvalidRequest(
                f"{amount(len(a.texts), 'texts')} beside {len(b.texts)} in text_2: expected one, or as many",
                field="text_1",
            )
        raw = False in (request.use_activation, request.activation, request.softmax)
        found = await scoring.compare(context, "/similarity", request.model, a, b, raw=raw)
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
        return found.model, response

    return [
        Operation("/rerank", rerank_documents, JINA, "Order documents", fields={"documents": object}),
        Operation("/score", score, JINA, "Score pairs"),
        Operation("/v1/score", score, JINA, "Score pairs"),
    ]
