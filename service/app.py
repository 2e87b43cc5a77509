"""The ASGI application: settings in, routes wired, resources opened and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from service.http.application import Application, ScoringMiddleware
from service.http.pages import add_pages
from service.observe.tracing import Tracing
from service.routes import claims, cohere, cohere_embed, duplicates, labelling, openai, operations, own, ranking, tei
from service.routes.foreign import check_aliases
from service.routes.json_body import most_of
from service.routes.paths import Paths
from service.routes.routing import answer_admitted
from service.service import Service
from service.settings import Settings
from service.version import version

_DESCRIPTION = """
Sentence similarity, answer ranking and entailment. Every error of our own routes has one shape, and every answer
carries an `X-Request-Id`: the caller's own, or a new one. Besides our own routes there are those of OpenAI, Cohere and
TEI, with their own errors. Numbers have seven significant digits; embeddings are float32.
"""
_ROUTERS = (
    *(own.router, ranking.router, claims.router, duplicates.router, labelling.router, operations.router),
    *(openai.router, openai.root, cohere.router, cohere.root, cohere_embed.router, cohere_embed.root, tei.router),
)
_KEYS: dict[str, Any] = {
    "HTTPBearer": {"type": "http", "scheme": "bearer"},
    "APIKeyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def create_app(settings: Settings, tracing: Tracing | None = None) -> Application:
    """Open the models and build the application; `tracing` is closed with it.

    Raises:
        StartupError: a model, a default or a provider is not as the settings say.
    """
    service = Service(settings)
    rate_limit = None
    if settings.rate_limit is not None:
        from service.http.rate_limit import RateLimit  # whose library brings that of Redis along

        rate_limit = RateLimit(settings, service.telemetry)
        if rate_limit.shared is not None:
            service.backends.append(rate_limit.shared)
    check_aliases(service)
    scoring = ScoringMiddleware(service, spans=tracing is not None)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.close()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)

    # Swagger's files come from this host, not from a CDN; the page at /docs is our own, since that one knows no prefix.
    app = FastAPIOffline(
        None,
        None,
        title="Semblance",
        description=_DESCRIPTION,
        version=version(),
        lifespan=lifespan,
        redirect_slashes=False,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        routes=[route for router in _ROUTERS for route in router.routes],
        telemetry={"auto_configure": False},  # `service/observe` has its own
    )
    files = add_pages(app, settings)
    app.state.service = service
    app.state.admission = scoring.around(answer_admitted)
    app.state.body_limits = {strict: most_of(settings, strict=strict) for strict in (False, True)}
    app.openapi = cache(lambda: _described(app, bool(settings.api_keys)))  # type: ignore[method-assign]
    return Application(
        app, service, paths=Paths(app.routes), scoring=scoring, files=files, rate_limit=rate_limit, tracing=tracing
    )


def _described(app: FastAPI, keys: bool) -> dict[str, Any]:
    """The OpenAPI document, with the ways to show a key where one is asked for; open routes say that they ask none."""
    described = FastAPI.openapi(app)
    if keys:
        described["components"]["securitySchemes"] = _KEYS
        described["security"] = [{name: []} for name in _KEYS]
    return described
