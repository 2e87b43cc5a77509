"""The middleware that every request passes before the router: what is written of it, its headers, and who may ask.

Keys are random and long (`settings.hash_key` refuses short ones), so SHA-256 is enough. A slow hash, made for
passwords, would cost more than the answer.
"""

import hashlib
import hmac
import logging
import os
import re
from asyncio import CancelledError, timeout
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from http import HTTPStatus
from ipaddress import IPv6Address, ip_network
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import HttpError, InternalError, NotHttp, RequestError, ShuttingDown, Unauthorized, quote
from service.http.loop_time import LoopTime
from service.observe.logs import REQUEST_ID, fields
from service.observe.metrics import PHASES
from service.observe.telemetry import OTHER_ROUTE, Telemetry
from service.observe.tracing import METHOD, ROUTE, STATUS, Tracing
from service.routes.dialects import dialect_of
from service.routes.paths import Paths
from service.routes.routing import STATE, RequestState
from service.service import Service

if TYPE_CHECKING:  # its library brings that of Redis along
    from service.http.rate_limit import RateLimit

log = logging.getLogger(__name__)
CLIENT_LEFT = 499
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SERVER_TIMING = b", ".join(b"%s;dur=%%.3f" % name.encode() for name in (*PHASES, "total"))  # milliseconds
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}").fullmatch
CLOSE = (b"connection", b"close")
LINGER_SECONDS = 2.0  # in which a client may read the answer to a request whose body it still sends
_REST_BYTES = 16_384  # of a body: so much is read after the answer
_IPV6_CLIENT = 64  # bits of the prefix: a client usually has the whole network of 2^64 addresses
_NO_UPLOADS = AsyncExitStack()  # FastAPI would close files of forms by it


class ClientLeft(Exception):
    """The client has closed its connection before the answer."""


class EarlyResponseCloser:
    """Says `Connection: close` where more of a body may come than is worth reading, and closes when that is read.

    Until then, for a little while, it reads the rest and drops it: the client might lose the answer otherwise.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        received = scope[STATE].received
        length = received.get(b"content-length", b"0")
        # Without its 100 a client that expects one sends its next request in the place of the body.
        large = not length.isdigit() or int(length.lstrip(b"0")[:18] or b"0") > _REST_BYTES or b"expect" in received
        if not large and b"transfer-encoding" not in received:
            await self._app(scope, receive, send)
            return
        whole = closes = False

        async def noted() -> Message:
            nonlocal whole
            message = await receive()
            whole = message["type"] != "http.request" or not message.get("more_body")
            return message

        async def closing(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start":
                closes = not whole
                if closes:
                    message["headers"] = [*message.get("headers", ()), CLOSE]
            elif closes:  # the server would close at once
                message = {**message, "more_body": True}
            await send(message)

        await self._app(scope, noted, closing)
        if closes:
            with suppress(TimeoutError, CancelledError):  # a process that ends cancels it
                async with timeout(LINGER_SECONDS):
                    while not whole:
                        await noted()
            await send({"type": "http.response.body"})


class RequestId:
    """Gives each request an id, the caller's own or a new one, and begins its `RequestState`."""

    def __init__(self, app: ASGIApp, router: ASGIApp, service: Service) -> None:
        """Put it before an application; its router begins and ends with the server.

        Once the service ends, each answer closes its connection.
        """
        self._app = app
        self._router = router
        self._service = service
        # The prefix is unique for each process, the number within it.
        self._prefix = os.urandom(8).hex()
        self._numbers = count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; its answer gets the headers of the state."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        began = perf_counter()
        received = dict(scope["headers"])
        given = received.get(b"x-request-id", b"")
        identity = given.decode() if _SANE_ID(given) else f"{self._prefix}{next(self._numbers):08x}"
        REQUEST_ID.set(identity)
        state = scope[STATE] = RequestState(identity, began, received)
        state.headers += (b"x-request-id", identity.encode()), (b"x-content-type-options", b"nosniff")
        scope["fastapi_middleware_astack"] = _NO_UPLOADS

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                state.started, state.status = True, message["status"]
                message["headers"] = [*message.get("headers", ()), *state.headers]
                if self._service.shutting_down or self._service.replaced:
                    message["headers"].append(CLOSE)
                if state.context is not None:
                    milliseconds = (1e3 * each for each in (*state.context.phase_seconds, perf_counter() - began))
                    message["headers"].append((b"server-timing", _SERVER_TIMING % (*milliseconds,)))
            await send(message)

        await self._app(scope, receive, answered)


class AccessLogMiddleware:
    """Counts each answer, and writes its line in the access log and its trace."""

    def __init__(
        self,
        app: ASGIApp,
        telemetry: Telemetry,
        paths: Paths,
        tracing: Tracing | None,
        *,
        access_log: bool,
    ) -> None:
        """Make the series of all routes."""
        self._app = app
        self._telemetry = telemetry
        self._paths = paths
        self._tracing = tracing
        self._access_log = access_log
        self._in_flight = 0
        telemetry.follow(telemetry.in_flight, lambda: self._in_flight)
        for path in (*paths.all, OTHER_ROUTE):
            telemetry.add_route(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        state: RequestState = scope[STATE]
        self._in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1
            self._write(scope, state, perf_counter())

    def _write(self, scope: Scope, state: RequestState, ended: float) -> None:
        route = state.route or self._paths.find(scope["path"]) or OTHER_ROUTE
        method = scope["method"] if scope["method"] in _METHODS else "other"  # clients may send any
        trace_id, context = None, state.context
        phases, spans = ((), ()) if context is None else (context.phase_seconds, context.spans or ())
        if self._tracing is not None and scope["path"] not in self._paths.open:
            said = {METHOD: method, ROUTE: route, STATUS: state.status}
            said |= {"semblance.model": state.model, "semblance.request_id": state.id}
            trace_id = self._tracing.record(state.received, spans, said, state.began, ended)
        seconds = ended - state.began
        self._telemetry.answered(route, state.model, state.status, seconds, phases, trace_id)
        if self._access_log:
            caller = {} if state.key is None else {"caller": state.key}
            spent = round(seconds * 1000, 3)
            more = {"route": route, "status": state.status, "model": state.model, "milliseconds": spent}
            log.info("request", extra=fields(method=method, **more, **caller))


class Errors:
    """Answers what is raised behind it in the format of the caller's dialect."""

    def __init__(self, app: ASGIApp, paths: Paths) -> None:
        """Put it before an application with these paths."""
        self._app = app
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        state: RequestState = scope[STATE]
        try:
            await self._app(scope, receive, send)
        except ClientLeft:
            state.status = CLIENT_LEFT
        except (Exception, CancelledError) as error:
            await self._answer(scope, send, error)

    async def _answer(self, scope: Scope, send: Send, error: Exception | CancelledError) -> None:
        """Answer an exception, unless the answer has begun.

        In a frame that is not in the exception's traceback: a name for it in one that is would be a circle, which keeps
        the request's body until the garbage collector comes by.
        """
        state, ours = scope[STATE], _as_request_error(error)
        if state.started:
            return
        if isinstance(error, HTTPException) and (hint := self._paths.hint(scope["path"])):
            what = f"no route {quote(scope['path'])}" if ours.status == 404 else ours.message
            ours = HttpError(ours.status, ours.message, ours.headers, more=f"{what}; {hint}")
        status, body = dialect_of(scope["path"]).answer(ours, state.id)
        headers = [(name.lower().encode(), value.encode()) for name, value in ours.headers.items()]
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _as_request_error(error: Exception | CancelledError) -> RequestError:
    """What an exception is to the caller; the log has the details of our mistakes."""
    if isinstance(error, CancelledError):  # by uvicorn, which would answer 500, at the end of the time to finish in
        return ShuttingDown("the service stops; ask again, and another one answers")
    if isinstance(error, RequestError):
        if error.status >= 500 and not isinstance(error, HttpError):
            log.error(error.message, exc_info=error.__cause__, extra=fields(code=error.code))
        return error
    if isinstance(error, HTTPException):  # the framework's own answers: 404, 405
        return HttpError(error.status_code, HTTPStatus(error.status_code).phrase, error.headers)
    log.error("unexpected error", exc_info=error)
    return InternalError()


class Turns:
    """Says whose a request is, and shares the event loop's time by caller."""

    def __init__(self, app: ASGIApp, keys: Mapping[str, str]) -> None:
        """Put it before an application; `keys`: name -> SHA-256 in hexadecimal."""
        self._app = app
        self._keys = [(name, bytes.fromhex(digest)) for name, digest in keys.items()]
        self._time = LoopTime()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        state: RequestState = scope[STATE]
        if self._keys:
            state.key = self._owner(given_key(state.received))
        address = client_of((scope.get("client") or ("",))[0])
        state.caller = f"address:{address}" if state.key is None else f"key:{state.key}"
        if scope["method"] == "HEAD":  # answered as GET; uvicorn sends no body
            scope = {**scope, "method": "GET"}
        # Who asks for health without end shares the loop's time too: a probe is a caller of its own address.
        await self._time.share(state.caller, self._app(scope, receive, send))

    def _owner(self, given: bytes) -> str | None:
        """The name of a key; compares all keys in constant time."""
        digest = hashlib.sha256(given).digest()
        owner = None
        for name, known in self._keys:
            if hmac.compare_digest(digest, known):
                owner = name
        return owner


class AccessControl:
    """Refuses requests of which one may not know whose they are, that come too often, or that have shown no key."""

    _single = (b"host", b"authorization", b"x-api-key", b"content-type", b"content-encoding")

    def __init__(self, app: ASGIApp, *, keyed: bool, rate_limit: "RateLimit | None", paths: Paths) -> None:
        """Put it before an application.

        Args:
            app: what is behind it.
            keyed: whether a request needs a key.
            rate_limit: of callers, by the name of their key, or else by address, which limits guesses.
            paths: which of them need no key and are not counted.
        """
        self._app = app
        self._keyed = keyed
        self._rate_limit = rate_limit
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            NotHttp: it has two headers of a name where only one counts: a proxy may have checked the other.
            RateLimited: too many requests with this key, or from this address without a key.
            Unauthorized: no key, or a wrong one.
        """
        state: RequestState = scope[STATE]
        if len(scope["headers"]) > len(state.received):  # a name is there twice, such as Accept
            names = [name for name, _ in scope["headers"]]
            for name in self._single:
                if (found := names.count(name)) > 1:
                    raise NotHttp(f"a request has one {name.decode().title()} header; found {found}")
        if scope["path"] not in self._paths.open and not self._is_file(scope["path"]):
            if self._rate_limit is not None:
                await self._rate_limit.take(state.caller)
            if self._keyed and state.key is None:
                how = "give the API key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'"
                raise Unauthorized("this API key is not known here" if given_key(state.received) else how)
        await self._app(scope, receive, send)

    def _is_file(self, path: str) -> bool:
        return f"{path}/".startswith(self._paths.files) and self._paths.find(path) is None


def client_of(address: str) -> str:
    """The client of an address: for IPv6 its network, and for IPv4 within IPv6 the IPv4 address."""
    if ":" not in address:
        return address
    try:
        if (inner := IPv6Address(address).ipv4_mapped) is not None:  # a socket of both, as with HOST=::
            return str(inner)
        return str(ip_network((address.partition("%")[0], _IPV6_CLIENT), strict=False))
    except ValueError:  # a socket's path
        return address


def given_key(headers: Mapping[bytes, bytes]) -> bytes:
    """The key that a request shows; empty: none."""
    authorization = headers.get(b"authorization", b"")
    scheme, _, given = authorization.partition(b" ")
    if scheme.lower() != b"bearer":  # some clients of TEI send the bare key as Authorization
        given = headers.get(b"x-api-key", authorization)
    return given.strip()
