"""The ASGI application: settings in, routes wired, resources opened and closed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version

from fastapi import Depends, FastAPI, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.edge import Edge
from service.errors import HttpError, InternalError, RequestError
from service.json_endpoint import JsonEndpoint
from service.logs import REQUEST_ID
from service.routes import operations_routes, scoring_routes
from service.settings import Settings
from service.state import Service

_DESCRIPTION = """
Sentence similarity, answer ranking and entailment. Every error has one shape, and every answer carries an
`X-Request-Id`: the caller's own, or a new one.
"""


def create_app(settings: Settings) -> Edge:
    """Open the models and build the application: FastAPI behind the door.

    Raises:
        StartupError: a model, a default or a provider is not as the settings say.
    """
    service = Service(settings)
    scoring, operations = scoring_routes(service), operations_routes(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.close()

    # The pages of /docs come from this host, not from a CDN: they work where there is no internet.
    app = FastAPIOffline(
        "/docs",
        None,
        title="Semblance",
        description=_DESCRIPTION,
        version=_version(),
        lifespan=lifespan,
        redirect_slashes=False,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    # Only described here, so that /docs offers a field for the key: the door checks it.
    described = [Depends(HTTPBearer(auto_error=False))] if settings.api_key else []
    app.include_router(scoring, dependencies=described)
    app.include_router(operations, dependencies=described)
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(Exception, _framework_error)
    return Edge(
        app,
        service,
        endpoints=[JsonEndpoint(route) for route in scoring.routes if isinstance(route, APIRoute)],
        routes=[route.path for route in operations.routes if isinstance(route, APIRoute)] + ["/docs", "/openapi.json"],
    )


async def _framework_error(_: Request, error: Exception) -> Response:
    """What the framework answers by itself, 404, 405 and 500, in our shape; the door logs what it raises again."""
    ours: RequestError = InternalError()
    if isinstance(error, HTTPException):
        ours = HttpError(error.status_code, HTTPStatus(error.status_code).phrase, error.headers)
    return Response(ours.body(REQUEST_ID.get()), ours.status, headers=dict(ours.headers), media_type="application/json")


def _version() -> str:
    try:
        return version("semblance")
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "0"
