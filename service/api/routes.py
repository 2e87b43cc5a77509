"""Our own routes: check limits, find the model, ask it, build the answer."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from fastapi import APIRouter, Request, Response

from contract.domain.derived import domains_of
from contract.manifest import EntailmentLabel
from contract.scoring import most_likely
from contract.tokenizer import Encoded
from service.api.labelling import answer_claims, answer_classify
from service.api.limits import Limits
from service.compute.cache import Key
from service.errors import InvalidRequest, TooLarge, some
from service.models.registry import Registry
from service.schemas import (
    SCALES,
    ClassifyRequest,
    ClassifyResponse,
    DomainInfo,
    EmbedRequest,
    EmbedResponse,
    EntailmentRequest,
    EntailmentResponse,
    EntailmentResult,
    ErrorResponse,
    ExplainRequest,
    ExplainResponse,
    FigureInfo,
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
from service.scoring.explaining import explain as explained
from service.scoring.explaining import explanation_names
from service.scoring.ranking import RERANK_TOP
from service.scoring.ranking import rank as ranked
from service.scoring.scorer import Scorer
from service.service import Service

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The body is not JSON, or the request not HTTP"},
    401: {"model": ErrorResponse, "description": "The API key is missing or wrong"},
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
    409: {"model": ReloadReport, "description": "A model or version was refused; the one served before stays"}
}


def scoring_routes(service: Service) -> APIRouter:
    """The POST routes. Each endpoint takes one request model and returns one typed dict that names the model."""
    router = APIRouter(tags=["scoring"], responses=_ERRORS)
    settings, registry, defaults = service.settings, service.registry, service.defaults
    limits = Limits(settings)

    async def read_pairs(
        scorer: Scorer, pairs: Sequence[Mapping[str, Any]], names: tuple[str, str]
    ) -> tuple[list[Encoded], list[Encoded]]:
        """Read both texts of each pair, after a check of their lengths; `names` are the fields that hold them."""
        texts = [pair[name] for pair in pairs for name in names]

        def field_of(i: int) -> str:
            return f"pairs.{i // 2}.{names[i % 2]}"

        limits.check_texts(texts, field_of)
        sentences = await scorer.read(texts, field_of)
        return sentences[::2], sentences[1::2]

    @router.post("/similarity", summary="Score pairs of sentences")
    async def similarity(request: SimilarityRequest) -> SimilarityResponse:
        limits.check_count("pairs", len(request.pairs), "max_pairs")
        scorer = await registry.pick(request.model or defaults["/similarity"], request.task)
        a, b = await read_pairs(scorer, request.pairs, ("a", "b"))
        raw, ratings, scores, computed = await scorer.similarity(a, b, request.task)
        results: list[SimilarityResult] = [
            {
                "score": score,
                "raw_score": raw_score,
                "tokens": (len(ids), len(ids_b)),
                "truncated": (cut, cut_b),
                "unknown": (unknown / words, unknown_b / words_b),
            }
            for score, raw_score, (ids, words, unknown, cut), (ids_b, words_b, unknown_b, cut_b) in zip(
                scores, raw, a, b, strict=True
            )
        ]
        if ratings is not None and (scale := scorer.rating_scale) is not None:
            for result, rating in zip(results, ratings, strict=True):
                result["rating"] = rating
                result["rating_scale"] = scale
        if request.tell_cached:
            _tell_cached(results, scorer, a, b, computed)
        answer = SimilarityResponse(model=scorer.id, scale=SCALES[request.task], results=results)
        return scorer.versioned(answer)

    @router.post("/rank", summary="Order candidates by their relevance, or similarity, to a query")
    async def rank(request: RankRequest) -> RankResponse:
        limits.check_count("candidates", len(request.candidates), "max_candidates")
        first = await registry.pick(request.model or defaults["/rank"], "similarity")
        second = await second_stage(request)
        limits.check_texts([request.query], lambda _: "query")
        limits.check_texts(request.candidates, lambda i: f"candidates.{i}")
        rerank_top = request.rerank_top or RERANK_TOP
        if second is not None:
            check_time(second, min(rerank_top, len(request.candidates)))
        return await ranked(
            first,
            request.query,
            request.candidates,
            second=second,
            rerank_top=rerank_top,
            top_k=request.top_k,
            tell_cached=request.tell_cached,
        )

    def check_time(second: Scorer, count: int) -> None:
        """Refuse a second stage that cannot end within the time limit."""
        at_a_time = service.counts.worker_threads
        if count * second.seconds_per_new_pair > settings.request_timeout * at_a_time:
            fits = max(1, int(settings.request_timeout * at_a_time / second.seconds_per_new_pair))
            message = (
                f"{count} candidates would take model {second.id} some "
                f"{count * second.seconds_per_new_pair / at_a_time:.0f} seconds, of {settings.request_timeout:g}; "
                f"{fits} at most"
            )
            raise InvalidRequest(message, field="rerank_top", limit=fits)

    async def second_stage(request: RankRequest) -> Scorer | None:
        """The model of the second stage, if the request asks for one."""
        if request.rerank_model is None and request.rerank_top is None:
            return None
        name = request.rerank_model or service.reranker
        if name is None:
            able = some(registry.able("similarity"))
            message = f"there is no default model for the second stage; name one of: {able}"
            raise InvalidRequest(message, field="rerank_model")
        return await registry.pick(name, "similarity", field="rerank_model")

    @router.post("/explain", summary="Show what made the score of two sentences")
    async def explain(request: ExplainRequest) -> ExplainResponse:
        scorer = await registry.pick(request.model or defaults["/explain"], "explanation")
        texts = [request.a, request.b]
        limits.check_texts(texts, "ab".__getitem__)
        a, b = sentences = await scorer.read(texts, "ab".__getitem__)
        limit = settings.max_explained_tokens
        for field, sentence in zip("ab", sentences, strict=True):
            if len(sentence.ids) > limit:
                message = f"{len(sentence.ids)} tokens to explain, the limit is {limit}"
                raise TooLarge(message, field=field, limit=limit)
        return await explained(scorer, a, b)

    @router.post("/entailment", summary="Label pairs of premise and hypothesis, or claims about a document")
    async def entailment(request: EntailmentRequest) -> EntailmentResponse:
        scorer = await registry.pick(request.model or defaults["/entailment"], "entailment")
        if request.pairs is None or request.premise is not None or request.hypotheses is not None:
            return await answer_claims(limits, scorer, request)
        limits.check_count("pairs", len(request.pairs), "max_pairs")
        premises, hypotheses = await read_pairs(scorer, request.pairs, ("premise", "hypothesis"))
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
            _tell_cached(results, scorer, premises, hypotheses, computed)
        return scorer.versioned(EntailmentResponse(model=scorer.id, results=results))

    @router.post("/classify", summary="Label texts")
    async def classify(request: ClassifyRequest) -> ClassifyResponse:
        return await answer_classify(service, limits, request)

    @router.post("/embed", summary="Embed sentences")
    async def embed(request: EmbedRequest) -> EmbedResponse:
        def field_of(i: int) -> str:
            return f"sentences.{i}"

        limits.check_count("sentences", len(request.sentences), "max_sentences")
        scorer = await registry.pick_encoder(request.model or defaults["/embed"])
        limits.check_texts(request.sentences, field_of)
        sentences = await scorer.read(request.sentences, field_of)
        matrix, computed = await scorer.embed(sentences)
        answer: EmbedResponse = {
            "model": scorer.id,
            "dim": matrix.shape[1],
            "embeddings": matrix.tolist(),
            "truncated": [sentence.truncated for sentence in sentences],
        }
        if request.tell_cached:
            ran = frozenset(computed)
            answer["cached"] = [sentence.ids not in ran for sentence in sentences]
        return scorer.versioned(answer)

    return router


def _tell_cached(
    results: Sequence[SimilarityResult | EntailmentResult],
    scorer: Scorer,
    a: Sequence[Encoded],
    b: Sequence[Encoded],
    computed: Collection[Key],
) -> None:
    """Add to each pair's result whether the caches had what it needed, where graphs had to run for `computed`."""
    ran = frozenset(computed)
    for result, left, right in zip(results, a, b, strict=True):
        result["cached"] = scorer.were_cached(left, right, ran)


def operations_routes(service: Service) -> APIRouter:
    """The GET routes, and the one that reloads."""
    router = APIRouter(tags=["operations"])
    settings, registry = service.settings, service.registry

    @router.get("/models", summary="What is served here", responses=_GUARDED)
    async def models(full: bool = False) -> ModelsResponse:
        labelling = {} if service.classifier is None else {"/classify": service.classifier}
        defaults = {**service.defaults, **labelling}
        return {
            "models": [_describe(name, registry, defaults, full=full) for name in registry.main_first()],
            "defaults": defaults,
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
        content, content_type = await service.exposition.page(request.headers.get("accept", ""))
        return Response(content, media_type=content_type)

    return router


def _describe(name: str, registry: Registry, defaults: Mapping[str, str], *, full: bool) -> ModelInfo:
    model = registry[name]
    manifest, opened = model.manifest, model.opened
    info: ModelInfo = {
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
        "rating_scale": manifest.similarity.label_scale if manifest.similarity is not None else None,
        "labels": list(manifest.classification.labels) if manifest.classification is not None else None,
        "explanations": explanation_names(manifest),
        "main": name in registry.main,
        "open": opened is not None,
        "provider": opened.provider if opened is not None else None,
        "placement": dict(opened.placement) if opened is not None else {},
        "cache": opened.tiers.names if opened is not None else [],
        "fingerprint": manifest.fingerprint,
    }
    if full:
        info["figures"] = [cast(FigureInfo, figure.model_dump()) for figure in manifest.figures]
        info["domain"] = [cast(DomainInfo, each.model_dump(mode="json")) for each in domains_of(manifest)]
    return info
