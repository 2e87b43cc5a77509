"""The ASGI application: settings in, routes wired, resources opened and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from service.http.admission import ScoringLimits, ScoringMiddleware
from service.http.middleware import (
    AccessControl,
    AccessLogMiddleware,
    EarlyResponseCloser,
    Errors,
    RequestId,
    Turns,
)
from service.http.pages import add_pages
from service.observe.tracing import Tracing
from service.routes import claims, cohere, cohere_embed, duplicates, labelling, native, openai, operations, ranking, tei
from service.routes.dialects import PEERS
from service.routes.foreign import check_aliases
from service.routes.paths import Paths
from service.routes.routing import max_counts
from service.service import Service
from service.settings import Settings
from service.version import version

if TYPE_CHECKING:  # its library brings that of Redis along
    from service.http.rate_limit import RateLimit

_DESCRIPTION = f"""
Sentence similarity, answer ranking and entailment. Every error of our own routes has one shape, and every answer
carries an `X-Request-Id`: the caller's own, or a new one. Besides our own routes there are those of other services
({", ".join(PEERS)}), with their own errors. Numbers have seven significant digits; embeddings are float32.
"""
_ROUTERS = (
    *(native.router, ranking.router, claims.router, duplicates.router, labelling.router, operations.router),
    *(openai.router, openai.root, cohere.router, cohere.root, cohere_embed.router, cohere_embed.root, tei.router),
)
_KEYS: dict[str, Any] = {
    "HTTPBearer": {"type": "http", "scheme": "bearer"},
    "APIKeyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
# Headers that scripts of other origins may read.
_EXPOSED = ("X-Request-Id", "Server-Timing", "Retry-After", "retry-after-ms")


class Application(FastAPI):
    """FastAPI with this service's routes and middleware."""

    def __init__(
        self, service: Service, scoring: ScoringLimits, rate_limit: "RateLimit | None", tracing: Tracing | None
    ) -> None:
        """Join the routes, and prepare the middleware around their router.

        Args:
            service: see `Service`; opened and closed with the application.
            scoring: what requests that ask a model pass besides.
            rate_limit: see `RateLimit`; None: callers may ask as often as they like.
            tracing: see `Tracing`; closed with the application.
        """

        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            await service.start()
            yield
            await service.close()
            if tracing is not None:
                await asyncio.to_thread(tracing.close)

        # Its own pages are off: their addresses are absolute, and so wrong under a path prefix, and Swagger would come
        # from a CDN. Ours are in `http/pages.py`. Its own /openapi.json is written anew for each request, in 15 ms.
        super().__init__(
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            title="Semblance",
            description=_DESCRIPTION,
            version=version(),
            lifespan=lifespan,
            redirect_slashes=False,
            license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
            routes=[route for router in _ROUTERS for route in router.routes],
            # `service/observe` has its own.
            telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
        )
        self.service = self.state.service = service
        self.scoring = scoring
        files = add_pages(self, service.settings)
        self.state.body_limits = {strict: max_counts(service.settings, strict=strict) for strict in (False, True)}
        self.openapi = cache(self._described)  # type: ignore[method-assign]
        made: asyncio.Future[bytes] | None = None

        async def document(_: Request) -> Response:
            nonlocal made
            if made is None:  # in a thread: it takes half a second
                made = asyncio.ensure_future(asyncio.to_thread(lambda: orjson.dumps(self.openapi())))
            return Response(await asyncio.shield(made), media_type="application/json")

        self.add_route("/openapi.json", document)
        self._stack = self._with_middleware(Paths(self.routes, files), rate_limit, tracing)

    def build_middleware_stack(self) -> ASGIApp:
        """What answers a request: our middleware in place of FastAPI's, around its router."""
        return self._stack

    def _with_middleware(self, paths: Paths, rate_limit: "RateLimit | None", tracing: Tracing | None) -> ASGIApp:
        """The router and its middleware, from the inside out. A request passes them in the other order."""
        service, settings = self.service, self.service.settings
        stack: ASGIApp = ScoringMiddleware(self.router, self.scoring, paths)
        stack = AccessControl(stack, keyed=bool(settings.api_keys), rate_limit=rate_limit, paths=paths)
        stack = Errors(stack, paths)
        if settings.cors_origins:  # outside the keys: a preflight request has none
            stack = CORSMiddleware(
                stack,
                allow_origins=settings.cors_origins,
                allow_methods=("GET", "POST"),
                allow_headers=("*",),
                expose_headers=_EXPOSED,
            )
        stack = Turns(stack, settings.api_keys)
        stack = AccessLogMiddleware(stack, service.telemetry, paths, tracing, access_log=settings.access_log)
        return RequestId(EarlyResponseCloser(stack), self.router, service)

    def _described(self) -> dict[str, Any]:
        """The OpenAPI document, with the ways to show a key where one is asked; open routes say that they ask none."""
        described = FastAPI.openapi(self)
        if self.service.settings.api_keys:
            described["components"]["securitySchemes"] = _KEYS
            described["security"] = [{name: []} for name in _KEYS]
        return described


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
    return Application(service, ScoringLimits(service, traced=tracing is not None), rate_limit, tracing)
