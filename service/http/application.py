"""The application that the server calls: FastAPI's router, and the middleware that every request passes before it."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.operation import Operation
from service.api.route import Table
from service.http.connection import CLOSE, CONNECTION, Connection
from service.http.guard import Callers, Keys, OneOfEach
from service.http.limits import AdmissionMiddleware, BodyReader, Deadline, Hasty, held_of
from service.http.memory_limit import MemoryLimiter
from service.http.pages import SecurityHeaders
from service.http.record import AccessLogMiddleware, Errors, RequestId
from service.observe.tracing import Tracing
from service.service import Service

# Headers that scripts of other origins may read.
_EXPOSED = (
    "X-Request-Id", "X-Text-Language", "X-Suggested-Model", "Server-Timing", "Retry-After", "retry-after-ms",
)  # fmt: skip


class EarlyResponseCloser:
    """Says `Connection: close` where more of a body may come than is worth reading, and closes when that is read.

    What still arrives is neither parsed nor taken for a request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)
        if connection is None or not connection.expects_much():
            await self._app(scope, receive, send)
            return
        closes = False

        async def closing(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start":
                closes = connection.expects_much()
                if closes:
                    message["headers"] = [*message.get("headers", ()), CLOSE]
            elif closes:  # the server would close at once, and the client might lose the answer
                message = {**message, "more_body": True}
            await send(message)

        await self._app(scope, receive, closing)
        if closes:
            await connection.linger()
            await send({"type": "http.response.body"})


class ScoringMiddleware:
    """The middleware of single routes: of those that ask a model."""

    def __init__(self, service: Service, *, spans: bool) -> None:
        """Prepare; with `spans` timings keep when each phase began."""
        self.pending: Callable[[], int] = lambda: 0
        self.held = MemoryLimiter(
            max(service.settings.max_buffered_bytes, held_of(service.settings.max_body_bytes))
        )  # at least one
        self._settings = service.settings
        self._refusal = service.pool.refusal
        self._hasty = Hasty(service.settings.max_in_flight)
        self._spans = spans

    def around(self, app: ASGIApp, operation: Operation) -> ASGIApp:
        """The application of a route, with its middleware."""
        if not operation.scores:
            return app
        settings = self._settings
        app = BodyReader(app, settings.max_body_bytes, operation.media)
        app = Deadline(app, settings.request_timeout)
        busy, most = lambda: self.pending(), settings.max_in_flight
        return AdmissionMiddleware(app, busy, most, self._refusal, self._hasty, spans=self._spans)


class Application:
    """FastAPI with this service's routes and middleware."""

    def __init__(
        self,
        app: FastAPI,
        service: Service,
        *,
        table: Table,
        scoring: ScoringMiddleware,
        is_page: Callable[[str], bool],
        pages: Sequence[str],
        rate_limit: Callable[[ASGIApp, Callable[[Scope], bool]], ASGIApp] | None,
        tracing: Tracing | None,
    ) -> None:
        """Put the middleware around the router of `app`.

        Args:
            app: FastAPI, with all routes.
            service: see `Service`.
            table: its routes.
            scoring: what those of them that score pass besides.
            is_page: whether requests for a path, of which the table has none, need no key and count for no limit.
            pages: paths of other routes, for metrics.
            rate_limit: the middleware `Rate`, of an application and of whether a request counts for no limit.
            tracing: see `Tracing`.
        """
        self.app = app
        self.service = service
        self.scoring = scoring
        settings = service.settings

        def is_open(scope: Scope) -> bool:
            method, path = scope["method"], scope["path"]
            return table.is_open(method, path) or (is_page(path) and not table.find(path))

        # From the inside out. A request passes them in the other order.
        stack: ASGIApp = app.router
        if settings.api_keys:
            stack = Keys(stack, is_open)
        if rate_limit is not None:
            stack = rate_limit(stack, is_open)
        if settings.api_keys:
            stack = Callers(stack, settings.api_keys)
        stack = SecurityHeaders(stack)
        stack = OneOfEach(stack)
        stack = Errors(stack, table)
        if settings.cors_origins:  # outside the keys: a preflight request has none
            stack = CORSMiddleware(
                stack,
                allow_origins=settings.cors_origins,
                allow_methods=("GET", "POST"),
                allow_headers=("*",),
                expose_headers=_EXPOSED,
            )
        stack = AccessLogMiddleware(stack, service.telemetry, table, pages, tracing, access_log=settings.access_log)
        stack = RequestId(stack, service.registry.speaking)
        self._stack = EarlyResponseCloser(stack)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end with the server."""
        if scope["type"] == "http":
            scope["app"] = self.app
            await self._stack(scope, receive, send)
        else:
            await self.app(scope, receive, send)
