"""What those who run the service ask of it: models, health, metrics."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator
from starlette.responses import Response
from starlette.types import Scope

from service.errors import ForeignOrigin
from service.models.registry import ModelRegistry
from service.routes.dialects import OURS
from service.routes.limits import MAX_CLAIMS, MAX_DOCUMENT_CHARS, MAX_EXPLAINED_TOKENS
from service.routes.paths import OPEN
from service.routes.routing import JsonAnswer, ServedRequest, router_for, write
from service.schemas import Answer, Liveness, ModelsResponse, Readiness, ReloadReport
from service.scoring.explaining import explanation_names
from service.scoring.ranking import RERANK_TOP
from service.scoring.tokenising import MAX_TEXT_CHARS

router = router_for(OURS, "operations")
_LIMITS = ("max_body_bytes", "max_pairs", "max_candidates", "max_sentences")
_REFUSED: dict[str, Any] = {"model": ReloadReport, "description": "A model was refused; the one served before stays"}
_METRICS: dict[str, Any] = {
    "content": {"text/plain": {}, "application/openmetrics-text": {}},
    "description": "OpenMetrics if the Accept header asks for that, or else the older text format",
}
Flag = Annotated[bool, BeforeValidator(lambda value: value == "" or value)]  # `?full` is `?full=true`


@router.get("/models", summary="What is served here", response_model=ModelsResponse)
async def models(call: ServedRequest, full: Flag = False) -> Response:
    """List the models, the defaults and the limits."""
    service = call.service
    labelling = {} if service.classifier is None else {"/classify": service.classifier}
    defaults, registry, settings = {**service.defaults, **labelling}, service.registry, service.settings
    answer: Answer = {
        "models": [_describe(name, registry, defaults, full=full) for name in registry.main_first()],
        "defaults": defaults,
        "rerank": {"default_model": service.reranker, "default_top": RERANK_TOP},
        "limits": {
            **{name: getattr(settings, name) for name in _LIMITS},
            "max_text_chars": MAX_TEXT_CHARS,
            "max_document_chars": MAX_DOCUMENT_CHARS,
            "max_claims": MAX_CLAIMS,
            "max_explained_tokens": MAX_EXPLAINED_TOKENS,
            "request_timeout_seconds": settings.request_timeout,
        },
    }
    told = write(answer)
    if service.told_models.get(full) != told:
        service.told_models[full] = told
    return JsonAnswer(service.told_models[full])


@router.post(
    "/models/reload",
    summary="Look for new, changed and removed models",
    response_model=ReloadReport,
    responses={409: _REFUSED},
)
async def reload(call: ServedRequest) -> Response:
    """Serve the models that are in the folders now."""
    service = call.service
    _check_origin(call.scope, service.settings.cors_origins)
    service.reload_others()
    report = await service.reloader.reload()
    return JsonAnswer(report, status_code=409 if report["status"] == "failed" else 200)


@router.get("/health/live", summary="Does the process answer?", response_model=Liveness, openapi_extra=OPEN)
async def live() -> Response:
    """Say that the process answers."""
    return JsonAnswer({"status": "alive"})


@router.get(
    "/health",  # as TEI, vLLM and infinity have it
    summary="Should requests be sent here?",
    response_model=Readiness,
    responses={503: {"model": Readiness}},
    openapi_extra=OPEN,
)
@router.get(
    "/health/ready",
    summary="Should requests be sent here?",
    response_model=Readiness,
    responses={503: {"model": Readiness}},
    openapi_extra=OPEN,
)
async def ready(call: ServedRequest) -> Response:
    """Say whether the models answer."""
    service = call.service
    readiness = service.readiness()
    return JsonAnswer(readiness, status_code=503 if readiness["status"] == "unready" else 200)


@router.get("/metrics", summary="Prometheus metrics", responses={200: _METRICS}, response_class=Response)
async def metrics(call: ServedRequest) -> Response:
    """Give all figures, as Prometheus scrapes them."""
    service = call.service
    content, content_type = await service.exposition.page(call.headers.get("accept", ""))
    return Response(content, media_type=content_type)


def _check_origin(scope: Scope, allowed: Sequence[str]) -> None:
    """Refuse what a page sends: browsers send a POST without a body before they ask whether they may.

    A page of this service's own address is refused too: after DNS rebinding another site's page has that address.

    Raises:
        ForeignOrigin: the page's origin is none that `allowed` names.
    """
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin and (origin in allowed or "*" in allowed):
        return
    if origin or headers.get(b"sec-fetch-site", b"none") != b"none":
        raise ForeignOrigin("a page may not ask for this, unless SEMBLANCE_CORS_ORIGINS names its origin")


def _describe(name: str, registry: ModelRegistry, defaults: Mapping[str, str], *, full: bool) -> Answer:
    model = registry[name]
    manifest, opened = model.manifest, model.opened
    info: Answer = {
        "id": manifest.id,
        "title": manifest.title,
        "architecture": manifest.architecture,
        "family": manifest.family,
        "tasks": list(model.capabilities),
        "default_for": [route for route, default in defaults.items() if registry.get(default) is model],
        "dim": manifest.dim,
        "max_tokens": manifest.limits.max_tokens,
        "languages": None if manifest.languages is None else list(manifest.languages),
        "rating_scale": manifest.similarity.label_scale if manifest.similarity is not None else None,
        "labels": list(manifest.classification.labels) if manifest.classification is not None else None,
        "entailment_labels": list(manifest.entailment.labels) if manifest.entailment is not None else None,
        "explanations": explanation_names(manifest),
        "main": name in registry.main,
        "open": opened is not None,
        "provider": opened.provider if opened is not None else None,
        "cache": opened.tiers.names if opened is not None else [],
        "fingerprint": manifest.fingerprint,
    }
    if full:
        parts = {"figures": manifest.figures, "domain": manifest.domain or (), "confidence": manifest.confidence}
        info |= {name: [each.model_dump(mode="json") for each in some] for name, some in parts.items()}
    return info
