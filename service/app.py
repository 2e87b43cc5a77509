"""The ASGI application: settings in, routes wired, resources opened and closed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.edge import Edge
from service.errors import HttpError
from service.json_endpoint import JsonEndpoint
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
    app.include_router(scoring)
    app.include_router(operations)
    app.add_exception_handler(HTTPException, _framework_error)
    return Edge(
        app,
        service,
        endpoints=[JsonEndpoint(route) for route in scoring.routes if isinstance(route, APIRoute)],
        routes=[route.path for route in operations.routes if isinstance(route, APIRoute)] + ["/docs", "/openapi.json"],
    )


async def _framework_error(_: Request, error: Exception) -> Response:
    """404 and 405 in our shape: the door, which knows the request id, writes the answer."""
    assert isinstance(error, HTTPException), "what the handler is registered for"
    raise HttpError(error.status_code, HTTPStatus(error.status_code).phrase, error.headers)


def _version() -> str:
    try:
        return version("semblance")
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "0"
