"""What those who run the service ask of it: models, health, metrics, and the page at `/`."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator
from starlette.types import Scope

from service.errors import ForeignOrigin
from service.models.registry import ModelRegistry
from service.routes.dialects.own import OPERATIONS
from service.routes.dialects.scoring import DialectContext
from service.routes.operation import OperationResponse, ReadOperation, RequestView
from service.schemas import Answer, Liveness, ModelsResponse, Readiness, ReloadReport
from service.scoring.explaining import explanation_names
from service.scoring.ranking import RERANK_TOP

_LIMITS = (
    *("max_body_bytes", "max_pairs", "max_candidates", "max_sentences"),
    *("max_text_chars", "max_document_chars", "max_claims", "max_explained_tokens"),
)
Flag = Annotated[bool, BeforeValidator(lambda value: value == "" or value)]  # `?full` is `?full=true`


def operations(scoring: DialectContext) -> list[ReadOperation]:
    """The requests of this kind."""
    service = scoring.service
    settings, registry = service.settings, service.registry

    async def models(full: Flag = False) -> ModelsResponse:
        labelling = {} if service.classifier is None else {"/classify": service.classifier}
        defaults = {**service.defaults, **labelling}
        return {
            "models": [_describe(name, registry, defaults, full=full) for name in registry.main_first()],
            "defaults": defaults,
            "rerank": {"default_model": service.reranker, "default_top": RERANK_TOP},
            "limits": {
                **{name: getattr(settings, name) for name in _LIMITS},
                "request_timeout_seconds": settings.request_timeout,
            },
        }

    async def reload(asked: RequestView) -> OperationResponse:
        _check_origin(asked.scope, settings.cors_origins)
        report = await service.reloader.reload()
        service.reload_others()
        return OperationResponse(report, 409 if report["status"] == "failed" else 200)

    async def live() -> Liveness:
        return {"status": "alive"}

    async def ready() -> OperationResponse:
        readiness = service.readiness()
        return OperationResponse(readiness, 503 if readiness["status"] == "unready" else 200)

    async def metrics(asked: RequestView) -> OperationResponse:
        content, content_type = await service.exposition.page(asked.accept)
        return OperationResponse(content, media=content_type.encode())

    refused = {"model": ReloadReport, "description": "A model was refused; the one served before stays"}
    formats = {
        "content": {"text/plain": {}, "application/openmetrics-text": {}},
        "description": "OpenMetrics if the Accept header asks for that, or else the older text format",
    }
    return [
        ReadOperation("/models", models, OPERATIONS, "What is served here"),
        ReadOperation(
            "/models/reload",
            reload,
            OPERATIONS,
            "Look for new, changed and removed models",
            method="POST",
            answer=ReloadReport,
            responses={409: refused},
        ),
        ReadOperation("/health/live", live, OPERATIONS, "Does the process answer?", open=True),
        *(
            ReadOperation(
                path,
                ready,
                OPERATIONS,
                "Should requests be sent here?",
                answer=Readiness,
                open=True,
                responses={503: {"model": Readiness}},
            )
            for path in ("/health/ready", "/health")  # the second as TEI, vLLM and infinity have it
        ),
        ReadOperation("/metrics", metrics, OPERATIONS, "Prometheus metrics", responses={200: formats}),
    ]


def _check_origin(scope: Scope, allowed: Sequence[str]) -> None:
    """Refuse what a page of another origin sends: browsers send a POST without a body before they ask whether they may.

    Raises:
        ForeignOrigin: the page is of another origin than this service, and none that `allowed` names.
    """
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin and (origin in allowed or "*" in allowed):
        return
    # A proxy in front may speak TLS: the scheme says nothing.
    own = not origin or origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1")
    if not own or headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise ForeignOrigin(
            "a page of another origin may not ask for this; SEMBLANCE_CORS_ORIGINS names those that may"
        )


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
        info["figures"] = [figure.model_dump() for figure in manifest.figures]
        info["domain"] = [each.model_dump(mode="json") for each in manifest.domain or ()]
        info["confidence"] = [each.model_dump(mode="json") for each in manifest.confidence]
    return info
