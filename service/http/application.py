"""The application that the server calls: FastAPI's router, and the middleware that every request passes before it.

What a request that asks a model may take is limited here too: a place, time, and bytes of a body.
"""

import asyncio
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.context import RequestContext
from service.errors import BodyTimeout, Overloaded, TookTooLong, TooLarge, UnsupportedMedia
from service.http.buffered import BufferedBytes, Held
from service.http.connection import ABORT, FEW_BYTES
from service.http.middleware import (
    CLIENT_LEFT,
    AccessControl,
    AccessLogMiddleware,
    ClientLeft,
    EarlyResponseCloser,
    Errors,
    RequestId,
    SecurityHeaders,
    caller_of,
)
from service.http.time_limit import TimeLimit
from service.observe.metrics import Timings
from service.observe.tracing import Tracing
from service.routes.context import RequestState, state_of
from service.routes.paths import Paths
from service.service import Service

if TYPE_CHECKING:  # its library brings that of Redis along
    from service.http.rate_limit import RateLimit

BUFFERED_BYTES = 163_840  # of bodies and unread answers, for each request that may be in flight: 160 MiB of 1,024
_LONGEST_REFUSAL = 1.0  # seconds
_COSTS = 16  # requests of a route, at least, by which the work of the next is told before it is read
_COSTS_SECONDS = 60.0  # for which those of a model count
_READ_ANYWAY = 8
_REMEMBERED = 10_000  # connections whose requests were refused
PIECE_BYTES = 65_536  # of an answer
_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch
# Headers that scripts of other origins may read.
_EXPOSED = ("X-Request-Id", "Server-Timing", "Retry-After", "retry-after-ms")


class ModelCosts:
    """What the last requests of a route cost that one model answered, in expected seconds a byte of their bodies."""

    def __init__(self) -> None:
        self.last: deque[float] = deque(maxlen=_COSTS)
        self.at = 0.0  # the time of the last one, by `perf_counter`

    def add(self, cost: float) -> None:
        """Add the cost of a request that has just ended."""
        self.last.append(cost)
        self.at = perf_counter()


class AdmissionMiddleware:
    """Refuses a request beyond the limit, or with too much work; begins its timings.

    Those whose body has not arrived take nobody's place. What a body means in work is not known before it is read; but
    where by its length even the cheapest of the route's last requests to any model would be refused, reading it is most
    likely in vain. One in `_READ_ANYWAY` is read all the same: it may ask a cheaper model than all of these.
    """

    def __init__(self, app: ASGIApp, scoring: "ScoringMiddleware") -> None:
        """Wrap the application of all routes that ask a model."""
        self._app = app
        self._scoring = scoring
        self._costs: dict[str, dict[str, ModelCosts]] = {}  # of each route, by the model that answered
        self._unread = 0  # requests refused by them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            Overloaded: too many requests are being answered, or too much work is waiting.
        """
        scoring, state = self._scoring, state_of(scope)
        context = RequestContext(caller_of(scope, state), timings=Timings(scoring.spans))
        scoring.check_room(context)
        state.context = context
        size, costs = length_of(state.received), self._costs.setdefault(state.route or "", {})

        async def ended(message: Message) -> None:
            scoring.leave(context)  # what is sent needs no work any more
            await send(message)

        try:
            if size > FEW_BYTES and (cheapest := _cheapest(costs)) is not None:
                refusal = scoring.queue.admissions.refusal(context, size * cheapest)
                if refusal is not None:
                    self._unread += 1
                    if self._unread % _READ_ANYWAY:
                        raise refusal
            await self._app(scope, receive, ended)
        except Overloaded as refusal:
            scoring.leave(context)
            await scoring.refuse(scope.get("client"), refusal)
        finally:
            scoring.leave(context)
            if size > FEW_BYTES and (context.expected or state.status == 200):
                costs.setdefault(state.model, ModelCosts()).add(context.expected / size)


def _cheapest(costs: Mapping[str, ModelCosts]) -> float | None:
    """Seconds a byte, expected of the cheapest of the last requests; None if they are too few."""
    now = perf_counter()
    recent = [each for each in costs.values() if now - each.at < _COSTS_SECONDS]
    if sum(len(each.last) for each in recent) < _COSTS:
        return None
    return min(min(each.last) for each in recent)


class Deadline:
    """Reads the body, and ends the work when its time is over, or when the client leaves.

    What is behind it receives one message. A large answer is sent in pieces, each when the client has read those before
    it, and counts until then as what its request holds.
    """

    def __init__(self, app: ASGIApp, reader: "BodyReader", seconds: float) -> None:
        self._app = app
        self._reader = reader
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            BodyTimeout: the body did not arrive in time.
            TookTooLong: there is no answer in time.
            ClientLeft: nobody wants one.
        """
        state = state_of(scope)
        context, held = state.context, self._reader.held
        assert context is not None, "the middleware before this one made it"
        context.deadline = perf_counter() + self._seconds
        request = Held(context.caller, lambda error: limit.end(error))
        leaving: asyncio.Task[None] | None = None

        async def in_time(message: Message) -> None:
            limit.stop()
            content = message.get("body", b"")
            if len(content) > PIECE_BYTES:
                if (abort := scope.get("extensions", {}).get(ABORT)) is not None:
                    request.end, request.stalled = lambda _: abort["call"](), True
                held.hold(request, len(content))
                for at in range(0, len(content) - PIECE_BYTES, PIECE_BYTES):
                    await send({**message, "body": content[at : at + PIECE_BYTES], "more_body": True})
                message = {**message, "body": content[at + PIECE_BYTES :]}
            await send(message)

        async def leaves() -> None:
            await receive()
            state.status = CLIENT_LEFT
            limit.end(ClientLeft)

        try:
            with TimeLimit(context) as limit:
                body = await self._reader.read(state, context, receive, request)
                leaving = asyncio.get_running_loop().create_task(leaves())

                async def whole() -> Message:
                    return {"type": "http.request", "body": body, "more_body": False}

                await self._app(scope, whole, in_time)
        except TimeoutError:
            if state.arrived:
                raise TookTooLong(f"no answer within {self._seconds:g} seconds") from None
            raise BodyTimeout(f"no whole body within {self._seconds:g} seconds") from None
        finally:
            held.hold(request, 0)
            if leaving is not None:
                leaving.cancel()


class BodyReader:
    """Reads whole bodies, within their limits."""

    def __init__(self, most: int, held: BufferedBytes, arrived: Callable[[RequestContext], None]) -> None:
        """Prepare; `most` is in bytes of one, `held` is of all, `arrived` hears of each whole one."""
        self.held = held
        self._arrived = arrived
        self._most = most

    async def read(self, state: RequestState, context: RequestContext, receive: Receive, request: Held) -> bytes:
        """The whole body of a request, which is what it holds from then on.

        Raises:
            Overloaded: too many requests are being answered.
            UnsupportedMedia: it is no JSON, or compressed.
            TooLarge: it has more bytes than it may; no more than that were read.
            ClientLeft: it ended half way.
        """
        self._check(state.received)
        body = await self._read(receive, request)
        self._arrived(context)
        state.arrived, request.stalled = True, False
        if len(body) > FEW_BYTES:
            self.held.hold(request, held_of(len(body), ascii_only=body.isascii()))
        return body

    def _check(self, headers: Mapping[bytes, bytes]) -> None:
        kind = headers.get(b"content-type")
        if kind is not None and kind != b"application/json" and not _JSON_TYPE(kind):
            raise UnsupportedMedia("the body must be application/json")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise UnsupportedMedia("the body must not be compressed")
        if length_of(headers) > self._most:
            raise self._too_large()

    async def _read(self, receive: Receive, request: Held) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._most:
                raise self._too_large()
            if not message.get("more_body"):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            self.held.hold(request, size)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body of more than {self._most} bytes", limit=self._most)


def length_of(headers: Mapping[bytes, bytes]) -> int:
    """Bytes of a body by its head; 0 where it does not say."""
    declared = headers.get(b"content-length", b"")
    return int(declared.lstrip(b"0")[:18] or b"0") if declared.isdigit() else 0  # Python refuses very many digits


def held_of(size: int, *, ascii_only: bool = False) -> int:
    """Bytes that a body of this size takes with its texts, which may need four times as many."""
    return size * (2 if ascii_only else 5)


class ScoringMiddleware:
    """The middleware of single routes: of those that ask a model."""

    def __init__(self, service: Service, *, spans: bool) -> None:
        """Prepare; with `spans` timings keep when each phase began."""
        self._settings = settings = service.settings
        self.most = settings.max_in_flight  # requests received and not yet answered
        self.held = BufferedBytes(max(BUFFERED_BYTES * self.most, held_of(settings.max_body_bytes)))  # at least one
        self.delayed = 0  # refusals that wait
        self._again_at: OrderedDict[object, float] = OrderedDict()  # when those refused last may ask again
        self.queue = service.queue
        self._answering: set[RequestContext] = set()
        self.spans = spans

    def check_room(self, context: RequestContext) -> None:
        """Check that a request may be answered beside others.

        Raises:
            Overloaded: too many are being answered, and its caller has an equal share of the places.
        """
        if len(self._answering) >= self.most:
            callers = Counter(each.caller for each in self._answering)
            if callers[context.caller] >= self.most // len(callers):
                raise Overloaded(f"{self.most} requests are being answered", limit=self.most)

    def arrived(self, context: RequestContext) -> None:
        """A request has arrived with its body, and takes a place until `leave`.

        Raises:
            Overloaded: there is none.
        """
        self.check_room(context)
        self._answering.add(context)

    def leave(self, context: RequestContext) -> None:
        """A request is answered or given up; no effect the second time."""
        self.queue.ended(context)
        self._answering.discard(context)

    async def refuse(self, client: object, refusal: Overloaded) -> NoReturn:
        """Refuse a request, later if its caller asks sooner than the last refusal told: then, or in a second.

        A refusal costs little, but thousands a second cost the CPU that others' work needs.

        Raises:
            Overloaded: this one.
        """
        # Its traceback holds what it was raised through: bodies and their texts.
        refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
        early = min(self._again_at.pop(client, 0.0) - perf_counter(), _LONGEST_REFUSAL)
        if early > 0 and self.delayed < self.most:
            self.delayed += 1
            try:
                await asyncio.sleep(early)
            finally:
                self.delayed -= 1
        self._again_at[client] = perf_counter() + refusal.seconds
        if len(self._again_at) > _REMEMBERED:
            self._again_at.popitem(last=False)
        raise refusal

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application of these routes, with their middleware."""
        settings = self._settings
        reader = BodyReader(settings.max_body_bytes, self.held, self.arrived)
        return AdmissionMiddleware(Deadline(app, reader, settings.request_timeout), self)


class Application:
    """FastAPI with this service's routes and middleware."""

    def __init__(
        self,
        app: FastAPI,
        service: Service,
        *,
        paths: Paths,
        scoring: ScoringMiddleware,
        files: tuple[str, ...],
        rate_limit: "RateLimit | None",
        tracing: Tracing | None,
    ) -> None:
        """Put the middleware around the router of `app`.

        Args:
            app: FastAPI, with all routes.
            service: see `Service`.
            paths: those of its routes.
            scoring: what those of them that score pass besides.
            files: folders whose paths, but those of routes, need no key and count for no limit; they end with /.
            rate_limit: see `RateLimit`; None: callers may ask as often as they like.
            tracing: see `Tracing`.
        """
        self.app = app
        self.service = service
        self.scoring = scoring
        settings = service.settings

        def is_open(scope: Scope) -> bool:
            path = scope["path"]
            return paths.is_open(path) or (f"{path}/".startswith(files) and paths.find(path) is None)

        # From the inside out. A request passes them in the other order.
        stack: ASGIApp = AccessControl(app.router, settings.api_keys, rate_limit, is_open)
        stack = SecurityHeaders(stack)
        stack = Errors(stack, paths)
        if settings.cors_origins:  # outside the keys: a preflight request has none
            stack = CORSMiddleware(
                stack,
                allow_origins=settings.cors_origins,
                allow_methods=("GET", "POST"),
                allow_headers=("*",),
                expose_headers=_EXPOSED,
            )
        stack = AccessLogMiddleware(stack, service.telemetry, paths, tracing, access_log=settings.access_log)
        stack = EarlyResponseCloser(stack)
        self._stack = RequestId(stack, lambda: service.shutting_down or service.replaced)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end with the server."""
        if scope["type"] == "http":
            scope["app"] = self.app
            await self._stack(scope, receive, send)
        else:
            await self.app(scope, receive, send)
