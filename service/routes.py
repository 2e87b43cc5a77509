"""The routes: limits checked, a model found, its answer put into words."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import choose_encoder

from contract.manifest import EntailmentLabel
from contract.scoring import most_likely
from contract.tokenizer import Encoded
from service.errors import InvalidRequest, TooLarge
from service.explaining import explain as explained
from service.explaining import explanation_names
from service.ranking import rank as rank_once
from service.ranking import rank_twice
from service.registry import Registry
from service.schemas import (
    EmbedRequest,
    EmbedResponse,
    EntailmentRequest,
    EntailmentResponse,
    EntailmentResult,
    ErrorResponse,
    ExplainRequest,
    ExplainResponse,
    Liveness,
    ModelInfo,
    ModelsResponse,
    Probabilities,
    RankRequest,
    RankResponse,
    Readiness,
    ReloadReport,
    SimilarityRequest,
    SimilarityResponse,
    SimilarityResult,
)
from service.scorer import Scorer
from service.snapshots import Collected
from service.state import Service

RERANK_TOP = 50  # candidates that a second stage orders, unless a request says how many

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The body is not JSON, or the request not HTTP"},
    401: {"model": ErrorResponse, "description": "The API key is missing or another one"},
    404: {"model": ErrorResponse, "description": "No such model, or not in this version"},
    408: {"model": ErrorResponse, "description": "The request did not arrive in time"},
    413: {"model": ErrorResponse, "description": "The body, a list or a text is over its limit"},
    415: {"model": ErrorResponse, "description": "The body is not declared as JSON"},
    422: {"model": ErrorResponse, "description": "A field does not fit, a text is empty, or the model lacks the task"},
    429: {"model": ErrorResponse, "description": "Too much is waiting, or this caller asks too often"},
    431: {"model": ErrorResponse, "description": "The headers are over their limit"},
    500: {"model": ErrorResponse, "description": "The service failed"},
    503: {"model": ErrorResponse, "description": "No answer in time"},
}
_GUARDED: dict[int | str, dict[str, Any]] = {status: _ERRORS[status] for status in (401, 429, 500)}  # GET
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/plain": {}, "application/openmetrics-text": {}},
        "description": "OpenMetrics if the Accept header asks for that, or else the older text format",
    }
}
_RELOAD: dict[int | str, dict[str, Any]] = {
    409: {"model": ReloadReport, "description": "Something of a model was refused; what was served before goes on"}
}


def scoring_routes(service: Service) -> APIRouter:
    """The POST routes. Each endpoint takes one request model and returns one typed dict that names the model."""
    router = APIRouter(tags=["scoring"], responses=_ERRORS)
    settings, registry, defaults = service.settings, service.registry, service.defaults

    def check_list(field: str, items: Sequence[object], limit: int) -> None:
        if len(items) > limit:
            raise TooLarge(f"{len(items)} {field}, the limit is {limit}", field=field, limit=limit)

    most = settings.max_text_chars

    def too_long(field: str, text: str) -> TooLarge:
        return TooLarge(f"a text of {len(text)} characters, the limit is {most}", field=field, limit=most)

    def check_text(field: str, text: str) -> None:
        if len(text) > most:
            raise too_long(field, text)

    def place_in_pairs(i: int) -> str:
        return f"pairs.{i // 2}.{'ab'[i % 2]}"

    @router.post("/similarity", summary="Score pairs of sentences")
    async def similarity(request: SimilarityRequest) -> SimilarityResponse:
        check_list("pairs", request.pairs, settings.max_pairs)
        scorer = registry.pick(request.model or defaults["/similarity"], "similarity")
        texts = [text for pair in request.pairs for text in (pair.a, pair.b)]
        if max(map(len, texts)) > most:
            i = next(i for i, text in enumerate(texts) if len(text) > most)
            raise too_long(place_in_pairs(i), texts[i])
        sentences = await scorer.read(texts, place_in_pairs)
        a, b = sentences[::2], sentences[1::2]
        raw, ratings, scores, computed = await scorer.similarity(a, b)
        results: list[SimilarityResult] = [
            {
                "score": score,
                "raw_score": raw_score,
                "tokens": (len(left.ids), len(right.ids)),
                "truncated": (left.truncated, right.truncated),
                "unknown": (left.unknown_ratio, right.unknown_ratio),
            }
            for score, raw_score, left, right in zip(scores, raw, a, b, strict=True)
        ]
        if ratings is not None and (scale := scorer.rating_scale) is not None:
            for result, rating in zip(results, ratings, strict=True):
                result["rating"] = rating
                result["rating_scale"] = scale
        if request.tell_cached:
            for result, left, right in zip(results, a, b, strict=True):
                result["cached"] = scorer.were_cached(left, right, computed)
        answer: SimilarityResponse = {"model": scorer.id, "results": results}
        if scorer.version is not None:
            answer["model_version"] = scorer.version
        return answer

    @router.post("/rank", summary="Order candidates by their similarity to a query")
    async def rank(request: RankRequest) -> RankResponse:
        check_list("candidates", request.candidates, settings.max_candidates)
        first = registry.pick(request.model or defaults["/rank"], "similarity")
        second = second_stage(request)
        check_text("query", request.query)
        if max(map(len, request.candidates)) > most:
            i = next(i for i, candidate in enumerate(request.candidates) if len(candidate) > most)
            raise too_long(f"candidates.{i}", request.candidates[i])
        if second is None:
            return await rank_once(
                first, request.query, request.candidates, request.top_k, tell_cached=request.tell_cached
            )
        return await rank_twice(
            first,
            second,
            request.query,
            request.candidates,
            rerank_top=request.rerank_top or RERANK_TOP,
            top_k=request.top_k,
            tell_cached=request.tell_cached,
        )

    def second_stage(request: RankRequest) -> Scorer | None:
        """Who orders the best again, if the request asks for that."""
        if request.rerank_model is None and request.rerank_top is None:
            return None
        name = request.rerank_model or service.reranker
        if name is None:
            able = ", ".join(registry.able("similarity"))
            message = f"there is no default model for the second stage; name one of: {able}"
            raise InvalidRequest(message, field="rerank_model")
        return registry.pick(name, "similarity", field="rerank_model")

    @router.post("/explain", summary="Show what made the score of two sentences")
    async def explain(request: ExplainRequest) -> ExplainResponse:
        scorer = registry.pick(request.model or defaults["/explain"], "explanation")
        check_text("a", request.a)
        check_text("b", request.b)
        a, b = sentences = await scorer.read([request.a, request.b], lambda i: "ab"[i])
        limit = settings.max_explained_tokens
        for field, sentence in zip("ab", sentences, strict=True):
            if len(sentence.ids) > limit:
                message = f"{len(sentence.ids)} tokens to explain, the limit is {limit}"
                raise TooLarge(message, field=field, limit=limit)
        return await explained(scorer, a, b)

    @router.post("/entailment", summary="Label pairs of premise and hypothesis")
    async def entailment(request: EntailmentRequest) -> EntailmentResponse:
        check_list("pairs", request.pairs, settings.max_pairs)
        scorer = registry.pick(request.model or defaults["/entailment"], "entailment")
        texts: list[str] = []
        for i, pair in enumerate(request.pairs):
            check_text(f"pairs.{i}.premise", pair.premise)
            check_text(f"pairs.{i}.hypothesis", pair.hypothesis)
            texts += pair.premise, pair.hypothesis
        sentences = await scorer.read(texts, lambda i: f"pairs.{i // 2}.{('premise', 'hypothesis')[i % 2]}")
        premises, hypotheses = sentences[::2], sentences[1::2]
        answers, computed = await scorer.entailment(premises, hypotheses)
        results: list[EntailmentResult] = [
            {
                "label": cast(EntailmentLabel, most_likely(probabilities)),
                "probabilities": cast(Probabilities, probabilities),
                "truncated": (premise.truncated, hypothesis.truncated),
            }
            for probabilities, premise, hypothesis in zip(answers, premises, hypotheses, strict=True)
        ]
        if request.tell_cached:
            for result, premise, hypothesis in zip(results, premises, hypotheses, strict=True):
                result["cached"] = scorer.were_cached(premise, hypothesis, computed)
        answer: EntailmentResponse = {"model": scorer.id, "results": results}
        if scorer.version is not None:
            answer["model_version"] = scorer.version
        return answer

    @router.post("/embed", summary="Embed sentences")
    async def embed(request: EmbedRequest) -> EmbedResponse:
        check_list("sentences", request.sentences, settings.max_sentences)
        scorer = registry.pick_encoder(request.model or defaults["/embed"])
        for i, sentence in enumerate(request.sentences):
            check_text(f"sentences.{i}", sentence)
        sentences: list[Encoded] = await scorer.read(request.sentences, lambda i: f"sentences.{i}")
        matrix, computed = await scorer.embed(sentences)
        answer: EmbedResponse = {
            "model": scorer.id,
            "dim": matrix.shape[1],
            "embeddings": matrix.tolist(),
            "truncated": [sentence.truncated for sentence in sentences],
        }
        if scorer.version is not None:
            answer["model_version"] = scorer.version
        if request.tell_cached:
            answer["cached"] = [sentence.ids not in computed for sentence in sentences]
        return answer

    return router


def operations_routes(service: Service) -> APIRouter:
    """The GET routes, and the one that reloads."""
    router = APIRouter(tags=["operations"])
    settings, registry, defaults = service.settings, service.registry, service.defaults

    @router.get("/models", summary="What is served here", responses=_GUARDED)
    async def models() -> ModelsResponse:
        return {
            "models": [_describe(name, registry, defaults) for name in registry],
            "defaults": dict(defaults),
            "rerank": {"default_model": service.reranker, "default_top": RERANK_TOP},
            "limits": {
                "max_body_bytes": settings.max_body_bytes,
                "max_pairs": settings.max_pairs,
                "max_candidates": settings.max_candidates,
                "max_sentences": settings.max_sentences,
                "max_text_chars": settings.max_text_chars,
                "max_explained_tokens": settings.max_explained_tokens,
                "request_timeout_seconds": settings.request_timeout,
            },
        }

    @router.post(
        "/models/reload",
        summary="Look for new, changed and removed models",
        responses=_GUARDED | _RELOAD,
    )
    async def reload(response: Response) -> ReloadReport:
        report = await service.reloader.reload()
        service.reload_others()
        if report["status"] == "failed":
            response.status_code = 409
        return report

    @router.get("/health/live", summary="Does the process answer?")
    async def live() -> Liveness:
        return {"status": "alive"}

    @router.get("/health/ready", summary="Should requests be sent here?", responses={503: {"model": Readiness}})
    async def ready(response: Response) -> Readiness:
        readiness = service.readiness()
        if readiness["status"] == "unready":
            response.status_code = 503
        return readiness

    @router.get("/metrics", summary="Prometheus metrics", response_class=Response, responses=_GUARDED | _METRICS)
    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        # Putting thousands of series into words takes some 50 ms, during which others shall be answered.
        collected = Collected(service.telemetry.scrape())
        return Response(await asyncio.to_thread(encode, collected), media_type=content_type)

    return router


def _describe(name: str, registry: Registry, defaults: Mapping[str, str]) -> ModelInfo:
    model = registry[name]
    manifest = model.manifest
    return {
        "id": manifest.id,
        "name": model.release.name,
        "version": model.release.version,
        "versions": list(registry.versions(manifest.id)),
        "title": manifest.title,
        "architecture": manifest.architecture,
        "family": manifest.family,
        "tasks": list(model.capabilities),
        "default_for": [route for route, default in defaults.items() if registry.get(default) is model],
        "dim": manifest.dim,
        "max_tokens": manifest.limits.max_tokens,
        "rating_scale": model.scorer.rating_scale,
        "explanations": explanation_names(manifest),
        "provider": model.provider,
        "cache": model.tiers.names,
        "fingerprint": manifest.fingerprint,
        "figures": [
            {
                "task": figure.task,
                "corpus": figure.corpus,
                "split": figure.split,
                "metric": figure.metric,
                "value": figure.value,
                "rows": figure.rows,
            }
            for figure in manifest.figures
        ],
    }
