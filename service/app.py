"""The ASGI application: settings in, routes wired, resources opened and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.api.body import Body
from service.api.dialects import Dialects
from service.api.dialects.infer import PATHS
from service.api.json_endpoint import own_endpoint
from service.api.routes import operations_routes, scoring_routes
from service.errors import HttpError, InternalError, RequestError
from service.http.edge import OPEN, Edge, Tensors
from service.http.guide import add_guide, is_guide
from service.http.playground import add_playground, is_playground
from service.http.rate_limit import open_rate_limit
from service.observe.logs import REQUEST_ID
from service.observe.tracing import Tracing
from service.service import Service
from service.settings import Settings
from service.version import version

_DESCRIPTION = """
Sentence similarity, answer ranking and entailment. Every error of our own routes has one shape, and every answer
carries an `X-Request-Id`: the caller's own, or a new one. Besides our own routes there are those of TEI, Cohere, Jina,
vLLM, OpenAI and the Open Inference Protocol, with their own errors.
"""


def create_app(settings: Settings, tracing: Tracing | None = None) -> Edge:
    """Open the models and build the application: FastAPI wrapped in `Edge`; `tracing` is closed with it.

    Raises:
        StartupError: a model, a default or a provider is not as the settings say.
    """
    service = Service(settings)
    rate_limit = open_rate_limit(settings, service.telemetry)
    if rate_limit is not None and rate_limit.shared is not None:
        service.backends.append(rate_limit.shared)
    scoring, operations = scoring_routes(service), operations_routes(service)
    own = [own_endpoint(route, settings) for route in scoring.routes if isinstance(route, APIRoute)]
    dialects = Dialects(service, own)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.close()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)

    # /docs loads its files from this host, not from a CDN, and so works without internet access.
    app = FastAPIOffline(
        "/docs",
        None,
        title="Semblance",
        description=_DESCRIPTION,
        version=version(),
        lifespan=lifespan,
        redirect_slashes=False,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    # Only for the documentation; `http/guard.py` checks the key.
    ways = (HTTPBearer(auto_error=False), APIKeyHeader(name="X-API-Key", auto_error=False))
    keys = [Depends(way) for way in ways] if settings.api_keys else []
    if settings.playground:
        add_playground(app)
    for router in (scoring, operations, dialects.router):
        app.include_router(router, dependencies=keys)
    add_guide(app, settings.guide)

    @cache
    def described() -> dict[str, Any]:
        description = dialects.describe(app, keys)
        for path in OPEN:
            for operation in description["paths"][path].values():
                operation.pop("security", None)
        return description

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's way to extend it

    async def failed(request: Request, error: Exception) -> Response:
        """Errors of FastAPI's routes, in the format of the client's family; `Edge` logs the unexpected ones."""
        ours = _as_request_error(error)
        answer = dialects.error_format(request.url.path, Body())(ours, REQUEST_ID.get())
        return Response(answer.body, answer.status, headers=dict(ours.headers), media_type="application/json")

    for kind in (RequestError, HTTPException, Exception):
        app.add_exception_handler(kind, failed)
    shown = [is_playground] * settings.playground + [is_guide] * (settings.guide is not None)

    def is_page(path: str) -> bool:
        return any(holds(path) for holds in shown)

    get_paths = [route.path for route in operations.routes if isinstance(route, APIRoute)] + dialects.get_paths
    return Edge(
        app,
        service,
        endpoints=dialects.endpoints,
        routes=[*get_paths, "/docs", "/openapi.json"],
        error_format=dialects.error_format,
        tensors=Tensors(PATHS, dialects.infer.find),
        is_page=is_page,
        rate_limit=rate_limit,
        tracing=tracing,
    )


def _as_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, HTTPException):  # the framework's own answers: 404, 405
        return HttpError(error.status_code, HTTPStatus(error.status_code).phrase, error.headers)
    return InternalError()
