"""Infinity: `/embeddings`, `/classify` with `input`, and `/rerank` as LiteLLM's `infinity/` reads it.

Its embeddings are OpenAI's, and its `/rerank` without a prefix is answered as Jina's (`jina.py`).
"""

import time
from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.engine.context import RequestContext
from service.observe.logs import REQUEST_ID
from service.routes.dialects.fields import Changes, ForeignRequest, ModelName, OneOrMany, Usage, usage
from service.routes.dialects.jina import JINA
from service.routes.dialects.openai import OPENAI, EmbeddingsRequest, EmbeddingsResponse, embeddings_of
from service.routes.dialects.reranking import RerankRequest, rerank
from service.routes.dialects.scoring import DialectContext
from service.routes.dialects.tei import TeiPrediction, predictions_of
from service.routes.operation import Operation
from service.routes.texts import RequestTexts


class InfinityResult(TypedDict):
    """One document, as a text: LiteLLM's `infinity/` makes the object itself."""

    index: int
    relevance_score: float
    document: NotRequired[str]


class InfinityResponse(TypedDict):
    """The documents, best first; of equal ones the earlier first."""

    id: str
    object: Literal["rerank"]
    created: int
    model: str
    results: list[InfinityResult]
    usage: Usage


class InfinityClassifyRequest(ForeignRequest):
    """Texts to label with a model's own labels."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ["What a lovely film."]}]})

    input: OneOrMany
    model: ModelName = None
    raw_scores: Annotated[bool, Changes(True)] = Field(False, description="natural logarithms instead of probabilities")


class InfinityLabels(TypedDict):
    """The labels of each text, the most probable first."""

    id: str
    object: Literal["classify"]
    created: int
    model: str
    data: Annotated[list[list[TeiPrediction]], Field(description="in the order of the request")]
    usage: Usage


def operations(scoring: DialectContext) -> list[Operation]:
    """The POST requests of this dialect."""

    async def rerank_infinity(request: RerankRequest, context: RequestContext) -> tuple[str, InfinityResponse]:
        model, answer = await rerank(context, scoring, request, "1")
        results: list[InfinityResult] = []
        for found in answer["results"]:
            result: InfinityResult = {"index": found["index"], "relevance_score": found["relevance_score"]}
            if "document" in found:
                result["document"] = request.text_of(found["index"], scoring.limits)
            results.append(result)
        return model, {
            "id": answer["id"],
            "object": "rerank",
            "created": answer["created"],
            "model": answer["model"],
            "results": results,
            "usage": answer["usage"],
        }

    async def infinity_embeddings(
        request: EmbeddingsRequest, context: RequestContext
    ) -> tuple[str, EmbeddingsResponse]:
        return await embeddings_of(context, scoring, request)

    async def infinity_classify(
        request: InfinityClassifyRequest, context: RequestContext
    ) -> tuple[str, InfinityLabels]:
        texts = RequestTexts.of("input", request.input)
        found = await scoring.label(context, request.model, texts)
        _, read = await scoring.tokenise(context, found.model, texts)
        return found.model, {
            "id": f"classify-{REQUEST_ID.get()}",
            "object": "classify",
            "created": int(time.time()),
            "model": found.model,
            "data": [predictions_of(probabilities, request.raw_scores) for probabilities in found.probabilities],
            "usage": usage(sum(len(each.ids) for each in read)),
        }

    return [
        Operation("/embeddings", infinity_embeddings, OPENAI, "Embed texts"),
        Operation("/classify", infinity_classify, JINA, "Label texts", fields={"input": object}),
        # LiteLLM's `infinity/` has one base for `/rerank`, whose answer differs from Jina's, and for `/embeddings`.
        Operation("/infinity/embeddings", infinity_embeddings, OPENAI, "Embed texts"),
        Operation("/infinity/rerank", rerank_infinity, JINA, "Order documents"),
    ]
