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

from service.dialects import Dialects
from service.edge import OPEN, Edge
from service.errors import HttpError, InternalError, RequestError
from service.json_endpoint import JsonEndpoint
from service.logs import REQUEST_ID
from service.routes import operations_routes, scoring_routes
from service.settings import Settings
from service.state import Service
from service.tracing import Tracing
from service.version import version

_DESCRIPTION = """
Sentence similarity, answer ranking and entailment. Every error of our own routes has one shape, and every answer
carries an `X-Request-Id`: the caller's own, or a new one. Besides our own routes there are those of TEI, Cohere, Jina,
vLLM, OpenAI and the Open Inference Protocol, with their own errors.
"""


def create_app(settings: Settings, tracing: Tracing | None = None) -> Edge:
    """Open the models and build the application: FastAPI behind the door.

    Args:
        settings: of the service.
        tracing: where traces go, if anywhere; closed with the application.

    Raises:
        StartupError: a model, a default or a provider is not as the settings say.
    """
    service = Service(settings)
    scoring, operations = scoring_routes(service), operations_routes(service)
    dialects = Dialects(service, [JsonEndpoint(route) for route in scoring.routes if isinstance(route, APIRoute)])

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.close()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)

    # The pages of /docs come from this host, not from a CDN: they work where there is no internet.
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
    # Only described here, so that /docs offers a field for the key: the door checks it.
    ways = (HTTPBearer(auto_error=False), APIKeyHeader(name="X-API-Key", auto_error=False))
    keys = [Depends(way) for way in ways] if settings.api_keys else []
    for router in (scoring, operations, dialects.router):
        app.include_router(router, dependencies=keys)

    @cache
    def described() -> dict[str, Any]:
        description = dialects.describe(app, keys)
        for path in OPEN:
            for operation in description["paths"][path].values():
                operation.pop("security", None)
        return description

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's way to extend it

    async def failed(request: Request, error: Exception) -> Response:
        """What FastAPI's routes raise, in the words of who asked; the door logs what the framework raises again."""
        ours = _as_request_error(error)
        words = dialects.wording(request.url.path, b"")(ours, REQUEST_ID.get())
        return Response(words.body, words.status, headers=dict(ours.headers), media_type="application/json")

    for kind in (RequestError, HTTPException, Exception):
        app.add_exception_handler(kind, failed)
    get_paths = [route.path for route in operations.routes if isinstance(route, APIRoute)] + dialects.get_paths
    return Edge(
        app,
        service,
        endpoints=dialects.endpoints,
        routes=[*get_paths, "/docs", "/openapi.json"],
        wording=dialects.wording,
        tracing=tracing,
    )


def _as_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, HTTPException):  # what the framework answers by itself: 404, 405
        return HttpError(error.status_code, HTTPStatus(error.status_code).phrase, error.headers)
    return InternalError()
