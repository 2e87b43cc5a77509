"""The middleware of routes that ask a model: each request has a place, time, and bytes of a body, and no more."""

import asyncio
import logging
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import NoReturn, Self

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.context import RequestContext
from service.errors import BodyTimeout, Overloaded, TookTooLong, TooLarge, UnsupportedMedia
from service.http.connection import ABORT, FEW_BYTES
from service.http.middleware import (
    CLIENT_LEFT,
    ClientLeft,
)
from service.observe.logs import ThrottledWarning
from service.observe.metrics import Timings
from service.routes.routing import STATE, RequestState
from service.service import Service

BUFFERED_BYTES = 163_840  # of bodies and unread answers, for each request that may be in flight: 160 MiB of 1,024
_TIME_LEFT_SECONDS = 0.05  # at least, between two looks whether a paused request has more time
_LONGEST_REFUSAL = 1.0  # seconds
_COSTS = 16  # answered requests of a route, at least, from which the cost of the next is estimated before it is read
_COSTS_SECONDS = 60.0  # for which those of a model count
_READ_ANYWAY = 8
_REMEMBERED = 10_000  # connections whose requests were refused
PIECE_BYTES = 65_536  # of an answer
_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch


_gave_up = ThrottledWarning(
    logging.getLogger(__name__),
    "bodies and unread answers take too much memory: the requests of the largest caller are dropped",
)


class TimeLimit:
    """Cancels the current task inside the block `with TimeLimit(context, seconds):`.

    The block then raises `TimeoutError` when the context's time is over, or the error of `end`. After a call of `stop`
    it goes on to its end.
    """

    __slots__ = ("_context", "_ended_by", "_entered", "_task", "_timer")

    def __init__(self, context: RequestContext, seconds: float) -> None:
        """Begin with this time, which is that of the context."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None, "requests are answered in tasks"
        self._task = task
        self._entered = True
        self._ended_by: Exception | type[Exception] | None = None
        self._context = context
        self._timer = loop.call_later(seconds, self._over)

    def _over(self) -> None:
        if (left := self._context.left) > 0:  # it was paused, or is
            self._timer = asyncio.get_running_loop().call_later(max(left, _TIME_LEFT_SECONDS), self._over)
        else:
            self.end(TimeoutError)

    def end(self, by: Exception | type[Exception]) -> None:
        """End the block with an error; no effect after the block."""
        if self._entered and self._ended_by is None:
            self._ended_by = by
            self._task.cancel()

    def stop(self) -> None:
        """End nothing any more."""
        self._entered = False
        self._timer.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        # A server that shuts down may have cancelled the task too: then it stays cancelled.
        if self._ended_by is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise self._ended_by from error


@dataclass(eq=False, slots=True)
class Held:
    """What one request holds."""

    caller: str
    end: Callable[[Overloaded], None]  # ends the request
    size: int = 0
    stalled: bool = True  # whether it waits for its client, not the client for an answer


class BufferedBytes:
    """All bytes that are held.

    Beyond the limit, requests of the caller with the most bytes are ended, so that nobody takes the room of others: the
    oldest one that is stalled, or else the newest, so that those before it are answered.
    """

    def __init__(self, most: int) -> None:
        """Begin with none; `most` is in bytes."""
        self.most = most
        self.bytes = 0
        self._of: dict[str, dict[Held, None]] = {}  # each caller's requests, the oldest first

    def hold(self, request: Held, size: int) -> None:
        """Hold `size` bytes of a request in all from now on, and end others, or itself, where all are too many."""
        self._set(request, size)
        while self.bytes > self.most:
            crowded = max(self._of, key=lambda caller: sum(each.size for each in self._of[caller]))
            requests = self._of[crowded]
            chosen = next((each for each in requests if each.stalled), None) or next(reversed(requests))
            _gave_up.note(bytes=self.bytes, caller=crowded)
            self._set(chosen, 0)
            chosen.end(Overloaded(f"requests and answers of {self.most} bytes are held", limit=self.most))

    def _set(self, request: Held, size: int) -> None:
        self.bytes += size - request.size
        request.size = size
        if size:
            self._of.setdefault(request.caller, {})[request] = None
        elif request.caller in self._of:
            self._of[request.caller].pop(request, None)
            if not self._of[request.caller]:
                del self._of[request.caller]


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
        scoring, state = self._scoring, scope[STATE]
        context = RequestContext(state.caller, timings=Timings(scoring.spans))
        scoring.check_room(context)
        state.context, state.timings = context, context.timings
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

    What is behind it finds the body in the state. A large answer is sent in pieces, each when the client has read those
    before it, and counts until then as what its request holds.
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
        state: RequestState = scope[STATE]
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
            with TimeLimit(context, self._seconds) as limit:
                state.body = await self._reader.read(state, context, receive, request)
                leaving = asyncio.get_running_loop().create_task(leaves())
                await self._app(scope, receive, in_time)
        except TimeoutError:
            if state.arrived:
                raise TookTooLong(f"no answer within {self._seconds:g} seconds") from None
            raise BodyTimeout(f"no whole body within {self._seconds:g} seconds") from None
        finally:
            state.body = b""
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
        if not context.ended:
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
