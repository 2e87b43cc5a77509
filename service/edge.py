"""The door: everything that every request meets, in one plain ASGI layer.

Request id, API key, rate limit, the body's size, the time-out, errors in one shape, the latency histogram, headers of
security, the access log. It stands before FastAPI, and calls the POST routes itself (see `service/json_endpoint.py` and
`service/dialects/operation.py`), because FastAPI's own layers cost more than the scoring of a pair; all other
routes go on to FastAPI.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from time import perf_counter

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.connection import WHOLE, SendWhole
from service.dialects.family import Wording
from service.dialects.open_inference import HEALTH
from service.dialects.operation import Endpoint
from service.errors import BodyTimeout, InternalError, Overloaded, RequestError, TookTooLong, TooLarge, UnsupportedMedia
from service.guard import Guard
from service.logs import REQUEST_ID, fields
from service.pages import NOSNIFF, page_headers
from service.repository import AT
from service.state import Service
from service.telemetry import NO_MODEL, OTHER_ROUTE
from service.time_limit import TimeLimits
from service.timings import TIMINGS, Timings
from service.tracing import Tracing

log = logging.getLogger(__name__)

CLIENT_LEFT = 499
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_UNKNOWN_CLIENT = ("",)
_NO_EXTENSIONS: Mapping[str, SendWhole] = {}
# What a page's script may read.
_EXPOSED = ("X-Request-Id", "X-Model-Version", "Server-Timing", "Retry-After", "retry-after-ms")
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}").fullmatch
OPEN = frozenset({"/health/live", "/health/ready", *HEALTH})  # to everybody, with a key or without
_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch


class ClientLeft(Exception):
    """The connection closed before the body was complete."""


class Edge:
    """The ASGI application that the server calls; FastAPI stands behind it."""

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        *,
        endpoints: Iterable[Endpoint],
        routes: Iterable[str],
        wording: Callable[[str, bytes], Wording],
        tracing: Tracing | None = None,
    ) -> None:
        """Stand before `app`.

        Args:
            app: what answers all routes but the POST ones.
            service: what the routes run on; tests swap its parts.
            endpoints: the POST routes.
            routes: paths of the other routes, which metrics may name.
            wording: (path, body as far as it was read) -> how to tell the sender that the request failed.
            tracing: where traces go, if anywhere.
        """
        self.app = app
        self.service = service
        # Requests received and not yet answered, those that wait for their turn of the event loop included: only the
        # server knows, which sets this.
        self.pending: Callable[[], int] = lambda: 0
        self._wording = wording
        self._tracing = tracing
        self._endpoints = {endpoint.path: endpoint for endpoint in endpoints}
        self._routes = frozenset((*self._endpoints, *routes))
        settings = service.settings
        self._max_body = settings.max_body_bytes
        self._max_in_flight = settings.max_in_flight
        self._max_held_bytes = max(
            settings.max_held_bytes, settings.max_body_bytes
        )  # a body that may come may come whole
        self._held_bytes = 0  # of bodies that have begun to arrive and not ended
        self._timeout = settings.request_timeout
        self._time_limits = TimeLimits(settings.request_timeout)
        self._access_log = settings.access_log
        self._telemetry = telemetry = service.telemetry
        self._guard: Guard | None = None
        if settings.api_keys or settings.rate_limit:
            self._guard = Guard(settings.api_keys, service.rate_limit)
        self._answer: ASGIApp = self._respond
        self._has_middleware = bool(settings.cors_origins)
        if settings.cors_origins:  # outside of the guard: a browser's question whether it may ask carries no key
            self._answer = CORSMiddleware(
                self._respond,
                allow_origins=settings.cors_origins,
                allow_methods=("GET", "POST"),
                allow_headers=("*",),
                expose_headers=_EXPOSED,
            )
        self._in_flight = 0
        self.ended = 0  # requests, answered or not
        # Request ids are unique over processes by the prefix and within one by the number.
        self._id_prefix = os.urandom(8).hex().encode()
        self._id_numbers = count()
        telemetry.watch(telemetry.in_flight, lambda: self._in_flight)
        for path in self._endpoints:
            telemetry.add_route(path, scores=True)
        for path in (*routes, OTHER_ROUTE):
            telemetry.add_route(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            try:
                await self._answer(scope, receive, send)
            finally:
                self.ended += 1
        else:
            await self.app(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        headers = dict(scope["headers"])
        request_id = headers.get(b"x-request-id", b"")
        if not request_id or not _SANE_ID(request_id):
            request_id = b"%s%08x" % (self._id_prefix, next(self._id_numbers))
        REQUEST_ID.set(request_id.decode())
        path: str = scope["path"]
        # Middleware that adds to answers must see them.
        whole = None if self._has_middleware else scope.get("extensions", _NO_EXTENSIONS).get(WHOLE)
        answer = _Answer(send, whole, request_id, started)
        self._in_flight += 1
        try:
            endpoint = self._endpoints.get(path) if scope["method"] == "POST" else None
            if endpoint is not None and self.pending() > self._max_in_flight:  # before anything that costs
                raise Overloaded(f"{self._max_in_flight} requests are being answered", limit=self._max_in_flight)
            if self._guard is not None and path not in OPEN:
                answer.caller = await self._guard.admit(headers, (scope.get("client") or _UNKNOWN_CLIENT)[0])
            if endpoint is None:
                await self.app(scope, receive, answer.send)
            else:
                await self._score(endpoint, headers, receive, answer)
        except RequestError as error:
            if error.status >= 500:
                log.error(error.message, exc_info=error.__cause__, extra=fields(code=error.code))
            await answer.fail(error, self._wording(path, answer.question))
        except ClientLeft:
            answer.status = CLIENT_LEFT
        except Exception:
            log.exception("unexpected error")
            await answer.fail(InternalError(), self._wording(path, answer.question))
        finally:
            self._in_flight -= 1
            ended = perf_counter()
            route = path if path in self._routes else self._route_of(scope)
            self._telemetry.answered(route, answer.model, answer.status, ended - started, answer.timings)
            if self._tracing is not None and path not in OPEN:
                self._tracing.record(
                    headers,
                    answer.timings,
                    method=_method(scope["method"]),
                    route=route,
                    status=answer.status,
                    model=answer.model,
                    request_id=request_id.decode(),
                    began=started,
                    ended=ended,
                )
            if self._access_log:
                caller = {} if answer.caller is None else {"caller": answer.caller}
                log.info(
                    "request",
                    extra=fields(
                        method=_method(scope["method"]),
                        route=route,
                        status=answer.status,
                        model=answer.model,
                        milliseconds=round((ended - started) * 1000, 3),
                        **caller,
                    ),
                )

    async def _score(
        self, endpoint: Endpoint, headers: Mapping[bytes, bytes], receive: Receive, answer: "_Answer"
    ) -> None:
        content_type = headers.get(b"content-type")
        if content_type != b"application/json" and content_type is not None and not _JSON_TYPE(content_type):
            raise UnsupportedMedia("the body must be application/json")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise UnsupportedMedia("the body must not be compressed")
        answer.timings = timings = Timings(self._tracing is not None)
        TIMINGS.set(timings)
        body = payload = None
        try:
            with self._time_limits.begin():
                answer.question = body = await self._read(headers, receive)
                answer.model, payload = await endpoint(body)
        except TimeoutError:
            if body is None:
                raise BodyTimeout(f"no whole body within {self._timeout:g} seconds") from None
            raise TookTooLong(f"no answer within {self._timeout:g} seconds") from None
        finally:
            self.service.workers.ended(timings, answered=payload is not None)
        await answer.succeed(payload)

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The body, never more of it than the limit."""
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
        try:
            while message.get("more_body"):
                if size > self._max_body:  # before waiting for more, which may never come
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
        if size > self._max_body:
            raise self._too_large()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        return b"".join(chunks)

    def _route_of(self, scope: Scope) -> str:
        """What metrics and logs call a path that is no route's by itself: one of a closed set."""
        path = getattr(scope.get("route"), "path", "")  # FastAPI knows the route of a path with parameters
        return path if path in self._routes else OTHER_ROUTE

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body of more than {self._max_body} bytes", limit=self._max_body)


def _method(method: str) -> str:
    """What logs call it: one of a closed set, for a client may make up its own."""
    return method if method in _METHODS else "other"


class _Answer:
    """What goes back, once; remembers what metrics and logs want to know about it."""

    __slots__ = (
        "_began", "_held", "_request_id", "_send", "_send_whole", "_started", "caller", "model", "question", "status",
        "timings",
    )  # fmt: skip

    def __init__(self, send: Send, send_whole: SendWhole | None, request_id: bytes, began: float) -> None:
        self._began = began
        self._held: Message | None = None
        self._send = send
        self._send_whole = send_whole
        self._request_id = request_id
        self._started = False
        self.caller: str | None = None  # the name of the key
        self.model = NO_MODEL
        self.question = b""  # the body that is answered, once it is read
        self.status = 500
        self.timings: Timings | None = None  # of a request that scores

    async def send(self, message: Message) -> None:
        """Pass on what FastAPI answers, with headers of ours; a page's depend on the page."""
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            found = message.get("headers", ())
            message["headers"] = [*found, (b"x-request-id", self._request_id), NOSNIFF]
            if dict(found).get(b"content-type", b"").startswith(b"text/html"):
                self._held = message
                return
        elif self._held is not None:
            held, self._held = self._held, None
            held["headers"] += page_headers(message.get("body", b""))
            await self._send(held)
        await self._send(message)

    async def succeed(self, payload: bytes) -> None:
        """Answer 200."""
        self.status = 200
        _, has_versions, version = self.model.partition(AT)
        await self._whole(payload, ((b"x-model-version", version.encode()),) if has_versions else ())

    async def fail(self, error: RequestError, wording: Wording) -> None:
        """Answer with an error, unless an answer has begun already."""
        if self._started:
            return
        self.status, body = wording(error, self._request_id.decode())
        extra = [(name.encode(), value.encode()) for name, value in error.headers.items()]
        await self._whole(body, extra)

    async def _whole(self, payload: bytes, extra: Iterable[tuple[bytes, bytes]]) -> None:
        self._started = True
        headers = [(b"content-type", b"application/json"), (b"x-request-id", self._request_id), NOSNIFF, *extra]
        if self.timings is not None:
            headers.append((b"server-timing", self.timings.header(perf_counter() - self._began)))
        if self._send_whole is not None:
            lines = b"".join([b"%s: %s\r\n" % header for header in headers])
            if self._send_whole(self.status, lines, payload):
                return
        headers.append((b"content-length", b"%d" % len(payload)))
        await self._send({"type": "http.response.start", "status": self.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": payload})
