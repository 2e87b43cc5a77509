"""What is written down of every request: its id, its answer in metrics, log and trace, and what went wrong."""

import logging
import os
import re
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterator, Sequence
from http import HTTPStatus
from itertools import count
from time import perf_counter

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.exchange import EXCHANGE, RequestState, exchange_of
from service.api.route import Table
from service.errors import HttpError, InternalError, RequestError, ShuttingDown, quote
from service.http.connection import CONNECTION, Connection
from service.http.time_limit import ClientLeft
from service.observe.logs import REQUEST_ID, fields
from service.observe.telemetry import OTHER_ROUTE, Telemetry
from service.observe.timings import Timings
from service.observe.tracing import Tracing

log = logging.getLogger(__name__)

CLIENT_LEFT = 499
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}").fullmatch


class RequestId:
    """Gives each request an id, the caller's own or a new one, and begins its `RequestState`."""

    def __init__(self, app: ASGIApp, speaking: Callable[[Collection[str], str], str | None]) -> None:
        """Take the application, and what names a model that is for languages and has a capability, or none."""
        self._app = app
        self._speaking = speaking
        # The prefix is unique for each process, the number within it.
        self._prefix = os.urandom(8).hex()
        self._numbers = count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; its answer gets the headers of the exchange."""
        began = perf_counter()
        received = dict(scope["headers"])
        given = received.get(b"x-request-id", b"")
        identity = given.decode() if _SANE_ID(given) else f"{self._prefix}{next(self._numbers):08x}"
        REQUEST_ID.set(identity)
        exchange = scope[EXCHANGE] = RequestState(identity, began, received)
        exchange.headers.append((b"x-request-id", identity.encode()))

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.started, exchange.status = True, message["status"]
                message["headers"] = [*message.get("headers", ()), *exchange.headers]
                if exchange.timings is not None:
                    spent = exchange.timings.header(perf_counter() - began)
                    message["headers"].append((b"server-timing", spent))
                    message["headers"] += self._on_languages(exchange, exchange.timings)
            await send(message)

        await self._app(scope, receive, answered)

    def _on_languages(self, exchange: RequestState, timings: Timings) -> Iterator[tuple[bytes, bytes]]:
        """The headers about texts in other languages than the model's."""
        if not timings.languages:
            return
        yield b"x-text-language", ", ".join(timings.languages).encode()
        if timings.capability is not None:
            codes = [hint.removesuffix("?") for hint in timings.languages]
            suggested = self._speaking(codes, timings.capability)
            if suggested not in (None, exchange.model):
                yield b"x-suggested-model", str(suggested).encode()


class AccessLogMiddleware:
    """Counts each answer, and writes its line in the access log and its trace."""

    def __init__(
        self,
        app: ASGIApp,
        telemetry: Telemetry,
        table: Table,
        pages: Sequence[str],
        tracing: Tracing | None,
        *,
        access_log: bool,
    ) -> None:
        """Make the series of all routes, and of `pages`, paths of other routes."""
        self._app = app
        self._telemetry = telemetry
        self._table = table
        self._pages = frozenset(pages)
        self._tracing = tracing
        self._access_log = access_log
        self._in_flight = 0
        telemetry.in_flight.set_function(lambda: self._in_flight)
        for path in dict.fromkeys((*(route.path for route in table.routes), *pages, OTHER_ROUTE)):
            telemetry.add_route(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        exchange = exchange_of(scope)
        connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)
        self._in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1
            if connection is not None and connection.left:  # also if the work has not been cancelled
                exchange.status = CLIENT_LEFT
            self._write(scope, exchange, perf_counter())

    def _write(self, scope: Scope, exchange: RequestState, ended: float) -> None:
        route = exchange.route or self._route_of(scope["path"])
        method = scope["method"] if scope["method"] in _METHODS else "other"  # clients may send any
        trace_id = None
        if self._tracing is not None and not self._table.is_open(method, scope["path"]):
            trace_id = self._tracing.record(
                exchange.received,
                exchange.timings,
                method=method,
                route=route,
                status=exchange.status,
                model=exchange.model,
                request_id=exchange.id,
                began=exchange.began,
                ended=ended,
            )
        seconds = ended - exchange.began
        self._telemetry.answered(route, exchange.model, exchange.status, seconds, exchange.timings, trace_id)
        if self._access_log:
            caller = {} if exchange.caller is None else {"caller": exchange.caller}
            spent = round(seconds * 1000, 3)
            more = {"route": route, "status": exchange.status, "model": exchange.model, "milliseconds": spent}
            log.info("request", extra=fields(method=method, **more, **caller))

    def _route_of(self, path: str) -> str:
        """The route of a request that did not reach it; or whose route is not of the table."""
        if path in self._pages:
            return path
        found = self._table.find(path)
        return found[0].path if found else OTHER_ROUTE


class Errors:
    """Answers what is raised behind it in the format of the caller's family."""

    def __init__(self, app: ASGIApp, table: Table) -> None:
        """Prepare; the table is asked where no route has said whose request it is."""
        self._app = app
        self._table = table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        exchange = exchange_of(scope)
        try:
            await self._app(scope, receive, send)
        except ClientLeft:
            exchange.status = CLIENT_LEFT
        except (Exception, CancelledError) as error:
            ours = _as_request_error(error)
            if exchange.started:
                return
            if ours.status == 404 and isinstance(error, HTTPException) and (near := self._table.nearest(scope["path"])):
                ours = HttpError(404, ours.message, more=f"no route {quote(scope['path'])}; did you mean {near}?")
            status, body = (exchange.family or self._table.family(scope["path"])).error(ours, exchange.id)
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
