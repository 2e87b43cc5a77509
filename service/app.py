"""The ASGI application: settings in, routes wired, resources opened and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from service.http.application import Application, ScoringMiddleware
from service.http.pages import add_files, page_operations
from service.observe.tracing import Tracing
from service.routes.dialects import table_of
from service.routes.route import Table
from service.service import Service
from service.settings import Settings
from service.version import version

_DESCRIPTION = """
Sentence similarity, answer ranking and entailment. Every error of our own routes has one shape, and every answer
carries an `X-Request-Id`: the caller's own, or a new one. Besides our own routes there are those of TEI, Cohere, Jina,
vLLM and OpenAI, with their own errors. Numbers have seven significant digits; embeddings
are float32.
"""


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
    scoring = ScoringMiddleware(service, spans=tracing is not None)
    table = table_of(service, scoring.around, *page_operations(settings))

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
        routes=table.routes,
        telemetry={"auto_configure": False},  # `service/observe` has its own
    )
    app.openapi = cache(lambda: _described(app, table, bool(settings.api_keys)))  # type: ignore[method-assign]
    return Application(
        app,
        service,
        table=table,
        scoring=scoring,
        files=add_files(app, settings),
        pages=("/openapi.json",),
        rate_limit=rate_limit,
        tracing=tracing,
    )


def _described(app: FastAPI, table: Table, keys: bool) -> dict[str, Any]:
    """The OpenAPI document, with the ways to show a key where one is asked for."""
    described = FastAPI.openapi(app)
    table.describe(described)
    if keys:
        described["components"]["securitySchemes"] = {
            "HTTPBearer": {"type": "http", "scheme": "bearer"},
            "APIKeyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        for route in table.routes:
            if not route.operations[0].open:
                operation = described["paths"][route.path][route.operations[0].method.lower()]
                operation["security"] = [{"HTTPBearer": []}, {"APIKeyHeader": []}]
    return described
