"""The outermost ASGI layer: what is done for every request, before and after its route.

Request id, API key, rate limit, body size, time limit, errors, metrics, security headers, access log. It calls the POST
routes itself (`service/api/json_endpoint.py`), because FastAPI's layers cost more than scoring a pair; FastAPI answers
all other routes.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from time import perf_counter
from typing import Any, NamedTuple

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.body import JSON_LENGTH, TENSORS, Body
from service.api.dialects.family import ErrorFormat
from service.api.dialects.open_inference import HEALTH
from service.api.dialects.operation import Endpoint
from service.errors import BodyTimeout, InternalError, Overloaded, RequestError, TookTooLong, TooLarge, UnsupportedMedia
from service.http.answer import Answer
from service.http.connection import CONNECTION, WHOLE, Connection
from service.http.guard import Guard
from service.http.rate_limit import RateLimit
from service.http.time_limit import ClientLeft, TimeLimit
from service.observe.logs import REQUEST_ID, fields
from service.observe.telemetry import NO_MODEL, OTHER_ROUTE
from service.observe.timings import TIMINGS, Timings
from service.observe.tracing import Tracing
from service.service import Service

log = logging.getLogger(__name__)

CLIENT_LEFT = 499
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_UNKNOWN_CLIENT = ("",)
_NO_EXTENSIONS: Mapping[str, Any] = {}
# Headers that scripts of other origins may read.
_EXPOSED = ("X-Request-Id", "X-Model-Version", "Server-Timing", "Retry-After", "retry-after-ms")
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}").fullmatch
OPEN = frozenset({"/health/live", "/health/ready", *HEALTH})  # without an API key
_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch


class Tensors(NamedTuple):
    """Routes that take tensors: the routes, and path -> (route, endpoint), if it is one of these."""

    routes: Sequence[str]
    find: Callable[[str], tuple[str, Endpoint] | None]


_NO_TENSORS = Tensors((), lambda _: None)


class Edge:
    """The ASGI application that the server calls."""

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        *,
        endpoints: Mapping[str, Endpoint],
        routes: Iterable[str],
        error_format: Callable[[str, Body], ErrorFormat],
        tensors: Tensors = _NO_TENSORS,
        is_page: Callable[[str], bool] = lambda _: False,
        rate_limit: RateLimit | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """Wrap `app`, which answers all other routes than `endpoints`.

        Args:
            app: FastAPI.
            service: see `Service`.
            endpoints: the POST routes, by path.
            routes: paths of the other routes, for metrics.
            error_format: (path, body, empty until it was read) -> format of errors.
            tensors: the POST routes that take tensors, with their model in the path.
            is_page: whether requests for a path, other than those to `endpoints`, need no key and count for no limit.
            rate_limit: see `RateLimit`.
            tracing: see `Tracing`.
        """
        self.app = app
        self.service = service
        # Requests received and not yet answered, also those whose task has not begun; set by the server.
        self.pending: Callable[[], int] = lambda: 0
        self._error_format = error_format
        self._is_page = is_page
        self._tracing = tracing
        self._endpoints = endpoints
        self._tensors = tensors.find
        self._routes = frozenset((*self._endpoints, *routes))
        settings = service.settings
        self._max_body = settings.max_body_bytes
        self._max_in_flight = settings.max_in_flight
        self._max_held_bytes = max(settings.max_held_bytes, settings.max_body_bytes)  # at least one whole body
        self._receiving = 0  # requests that wait for the rest of their body
        self._held_bytes = 0  # of bodies that have begun to arrive and not ended
        self._timeout = settings.request_timeout
        self._access_log = settings.access_log
        self._telemetry = telemetry = service.telemetry
        self._guard: Guard | None = None
        if settings.api_keys or rate_limit is not None:
            self._guard = Guard(settings.api_keys, rate_limit)
        self._answer: ASGIApp = self._respond
        self._has_middleware = bool(settings.cors_origins)
        if settings.cors_origins:  # outside the guard: a preflight request has no API key
            self._answer = CORSMiddleware(
                self._respond,
                allow_origins=settings.cors_origins,
                allow_methods=("GET", "POST"),
                allow_headers=("*",),
                expose_headers=_EXPOSED,
            )
        self._in_flight = 0
        self.ended = 0  # requests that ended, answered or not
        # Request ids: the prefix is unique for each process, the number within it.
        self._id_prefix = os.urandom(8).hex().encode()
        self._id_numbers = count()
        telemetry.in_flight.set_function(lambda: self._in_flight)
        for path in (*self._endpoints, *tensors.routes):
            telemetry.add_route(path, scores=True)
        for path in (*routes, OTHER_ROUTE):
            telemetry.add_route(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            try:
                if self._has_middleware and scope["method"] == "OPTIONS":
                    await self._preflight(scope, receive, send)
                else:
                    await self._answer(scope, receive, send)
            finally:
                self.ended += 1
        else:
            await self.app(scope, receive, send)

    async def _preflight(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a preflight request, which the middleware answers."""
        if b"access-control-request-method" not in dict(scope["headers"]):
            await self._answer(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._answer(scope, receive, counted)
        finally:
            route = scope["path"] if scope["path"] in self._routes else OTHER_ROUTE
            self._telemetry.answered(route, NO_MODEL, status, perf_counter() - started, None)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        headers = dict(scope["headers"])
        request_id = headers.get(b"x-request-id", b"")
        if not request_id or not _SANE_ID(request_id):
            request_id = b"%s%08x" % (self._id_prefix, next(self._id_numbers))
        REQUEST_ID.set(request_id.decode())
        path: str = scope["path"]
        method = _method(scope["method"])
        if method == "HEAD":
            send = _without_body(send)
        # Middleware adds headers to the messages of ASGI.
        extensions = scope.get("extensions", _NO_EXTENSIONS)
        whole = None if self._has_middleware else extensions.get(WHOLE)
        connection: Connection | None = extensions.get(CONNECTION)
        answer = Answer(send, whole, request_id, started)
        self._in_flight += 1
        endpoint = tensor_route = None
        if scope["method"] == "POST":
            endpoint = self._endpoints.get(path)
            if endpoint is None and (found := self._tensors(path)) is not None:
                tensor_route, endpoint = found
        try:
            if endpoint is not None:  # before anything expensive
                self._check_in_flight()
            is_open = path in OPEN or (endpoint is None and self._is_page(path))
            if self._guard is not None and not is_open:
                answer.caller = await self._guard.admit(headers, (scope.get("client") or _UNKNOWN_CLIENT)[0])
            if endpoint is None:
                # HEAD is GET without the body.
                if scope["method"] == "HEAD":
                    scope = {**scope, "method": "GET"}
                await self.app(scope, receive, answer.send)
            else:
                await self._score(endpoint, headers, receive, answer, connection, tensors=tensor_route is not None)
        except RequestError as error:
            if error.status >= 500:
                log.error(error.message, exc_info=error.__cause__, extra=fields(code=error.code))
            await answer.fail(error, self._error_format(path, answer.question))
        except ClientLeft:
            answer.status = CLIENT_LEFT
        except Exception:
            log.exception("unexpected error")
            await answer.fail(InternalError(), self._error_format(path, answer.question))
        finally:
            self._in_flight -= 1
            ended = perf_counter()
            if connection is not None and connection.left:  # also if the work has not been cancelled
                answer.status = CLIENT_LEFT
            route = tensor_route or (path if path in self._routes else self._route_of(scope))
            trace_id = None
            if self._tracing is not None and path not in OPEN:
                trace_id = self._tracing.record(
                    headers,
                    answer.timings,
                    method=method,
                    route=route,
                    status=answer.status,
                    model=answer.model,
                    request_id=request_id.decode(),
                    began=started,
                    ended=ended,
                )
            self._telemetry.answered(route, answer.model, answer.status, ended - started, answer.timings, trace_id)
            if self._access_log:
                caller = {} if answer.caller is None else {"caller": answer.caller}
                log.info(
                    "request",
                    extra=fields(
                        method=method,
                        route=route,
                        status=answer.status,
                        model=answer.model,
                        milliseconds=round((ended - started) * 1000, 3),
                        **caller,
                    ),
                )

    async def _score(
        self,
        endpoint: Endpoint,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        answer: Answer,
        connection: Connection | None,
        *,
        tensors: bool,
    ) -> None:
        content_type = headers.get(b"content-type")
        if content_type != b"application/json" and content_type is not None and not _JSON_TYPE(content_type):
            if not tensors:
                raise UnsupportedMedia("the body must be application/json")
            if content_type != TENSORS:
                raise UnsupportedMedia("the body must be application/json or application/octet-stream")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise UnsupportedMedia("the body must not be compressed")
        answer.timings = timings = Timings(self._tracing is not None)
        TIMINGS.set(timings)
        body = payload = None
        try:
            with TimeLimit(self._timeout) as limit:
                if connection is not None:
                    connection.when_left(limit.leave)
                answer.question = body = Body(await self._read(headers, receive))
                if tensors:
                    body.json_length = headers.get(JSON_LENGTH)
                answer.model, payload = await endpoint(body)
        except TimeoutError:
            if body is None:
                raise BodyTimeout(f"no whole body within {self._timeout:g} seconds") from None
            raise TookTooLong(f"no answer within {self._timeout:g} seconds") from None
        finally:
            self.service.pool.ended(timings, answered=payload is not None)
        await answer.succeed(payload)

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The body; raises before more than the limit is in memory."""
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._max_body:
            raise self._too_large()
        message = await receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body") and message["type"] == "http.request":
            if len(body) > self._max_body:
                raise self._too_large()
            return body
        chunks, size = [body], len(body)
        self._held_bytes += size
        self._receiving += 1
        try:
            while message.get("more_body"):
                if size > self._max_body:
                    raise self._too_large()
                if self._held_bytes > self._max_held_bytes:
                    raise Overloaded(
                        f"bodies of {self._max_held_bytes} bytes are being received", limit=self._max_held_bytes
                    )
                message = await receive()
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                self._held_bytes += len(chunks[-1])
        finally:
            self._held_bytes -= size
            self._receiving -= 1
        if size > self._max_body:
            raise self._too_large()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        self._check_in_flight()
        return b"".join(chunks)

    def _check_in_flight(self) -> None:
        """Refuse a request beyond the limit; those whose body has not arrived take nobody's place."""
        if self.pending() - self._receiving > self._max_in_flight:
            raise Overloaded(f"{self._max_in_flight} requests are being answered", limit=self._max_in_flight)

    def _route_of(self, scope: Scope) -> str:
        """The route of a path with parameters, for metrics and logs."""
        path = getattr(scope.get("route"), "path", "")  # set by FastAPI
        return path if path in self._routes else OTHER_ROUTE

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body of more than {self._max_body} bytes", limit=self._max_body)


def _method(method: str) -> str:
    """The method, or "other": clients may send any."""
    return method if method in _METHODS else "other"


def _without_body(send: Send) -> Send:
    async def without(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return without
