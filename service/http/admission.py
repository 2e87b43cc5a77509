"""Middleware of the routes that ask a model: limits on requests in flight, their time, bodies and buffered bytes."""

import asyncio
import logging
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import NoReturn, Self

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.admission import RequestContext
from service.errors import BodyTimeout, Overloaded, TookTooLong, TooLarge, UnsupportedMedia
from service.http.connection import ABORT, FEW_BYTES
from service.http.middleware import CLIENT_LEFT, ClientLeft
from service.observe.logs import ThrottledWarning
from service.routes.paths import Paths
from service.routes.routing import STATE, RequestState
from service.service import Service

BUFFERED_BYTES_PER_REQUEST = 163_840  # bodies and unsent answers: 160 MiB where 1,024 may be in flight
_TIME_LEFT_SECONDS = 0.05  # at least, between two checks whether a paused request has more time
_LONGEST_REFUSAL = 1.0  # seconds
_MIN_COST_SAMPLES = 16  # requests that a route has answered before the cost of the next is estimated by its length
_COST_SAMPLE_SECONDS = 60.0  # how long they count
_PROBE_EVERY = 8  # of the requests that would be refused unread, one in so many is read all the same
_REMEMBERED = 10_000  # connections whose requests were refused
ANSWER_CHUNK_BYTES = 65_536
_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch
_over_limit = ThrottledWarning(
    logging.getLogger(__name__),
    "bodies and unread answers take too much memory: the requests of the largest caller are dropped",
)


class TimeLimit:
    """Cancels the current task inside the block `with TimeLimit(context, seconds):`.

    The block then raises `TimeoutError` when the context's time is over, or the error of `end`. After `disarm`
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
        self._timer = loop.call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        if (left := self._context.left) > 0:  # it was paused, or is
            self._timer = asyncio.get_running_loop().call_later(max(left, _TIME_LEFT_SECONDS), self._on_timer)
        else:
            self.end(TimeoutError)

    def end(self, by: Exception | type[Exception]) -> None:
        """End the block with an error; no effect after the block."""
        if self._entered and self._ended_by is None:
            self._ended_by = by
            self._task.cancel()

    def disarm(self) -> None:
        """Stop the timer: the block may finish, however long it takes."""
        self._entered = False
        self._timer.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disarm()
        # A server that shuts down may have cancelled the task too: then it stays cancelled.
        if self._ended_by is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise self._ended_by from error


@dataclass(eq=False, slots=True)
class HeldRequest:
    """A request and its share of the buffered bytes."""

    caller: str
    end: Callable[[Overloaded], None]  # ends the request
    size: int = 0
    stalled: bool = True  # whether it waits for its client to send or to read


class BufferedBytes:
    """All bytes that are held.

    Beyond the limit, requests of the caller with the most bytes are ended, so that nobody takes the room of others: the
    oldest one that is stalled, or else the newest, so that those before it are answered.
    """

    def __init__(self, limit: int) -> None:
        """Begin with none; `limit` is in bytes."""
        self.limit = limit
        self.bytes = 0
        self._by_caller: dict[str, dict[HeldRequest, None]] = {}  # each caller's requests, the oldest first

    def hold(self, request: HeldRequest, size: int) -> None:
        """Hold `size` bytes of a request in all from now on, and end others, or itself, where all are too many."""
        self._set(request, size)
        while self.bytes > self.limit:
            sizes = {caller: sum(each.size for each in requests) for caller, requests in self._by_caller.items()}
            largest = max(sizes, key=sizes.__getitem__)
            requests = self._by_caller[largest]
            chosen = next((each for each in requests if each.stalled), None) or next(reversed(requests))
            _over_limit.note(bytes=self.bytes, caller=largest)
            self._set(chosen, 0)
            chosen.end(Overloaded(f"requests and answers of {self.limit} bytes are held", limit=self.limit))

    def _set(self, request: HeldRequest, size: int) -> None:
        self.bytes += size - request.size
        request.size = size
        if size:
            self._by_caller.setdefault(request.caller, {})[request] = None
        elif request.caller in self._by_caller:
            self._by_caller[request.caller].pop(request, None)
            if not self._by_caller[request.caller]:
                del self._by_caller[request.caller]


@dataclass(eq=False)
class ModelCosts:
    """What the last requests of a route cost that one model answered, in expected seconds a byte of their bodies."""

    last: deque[float] = field(default_factory=lambda: deque(maxlen=_MIN_COST_SAMPLES))
    at: float = 0.0  # the time of the last one, by `perf_counter`

    def add(self, cost: float) -> None:
        """Add the cost of a request that has just ended."""
        self.last.append(cost)
        self.at = perf_counter()


class AdmissionMiddleware:
    """Refuses a request that asks a model beyond the limit, or with too much work; begins its context.

    A request whose body has not arrived does not count. Its work is known only after reading the body; but where at its
    length even the cheapest recent request of the route would be refused, it is refused unread. One in `_PROBE_EVERY`
    is read all the same: it may ask a cheaper model than all of these.
    """

    def __init__(self, app: ASGIApp, scoring: "ScoringLimits", paths: Paths) -> None:
        """Put it before an application with these paths."""
        self._app = app
        self._paths = paths.scoring
        self._scoring = scoring
        self._costs: dict[str, dict[str, ModelCosts]] = {}  # of each route, by the model that answered
        self._refused_unread = 0  # requests, with those that were read as one in `_PROBE_EVERY`

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            Overloaded: too many requests are being answered, or too much work is waiting.
        """
        scoring, state = self._scoring, scope[STATE]
        if scope["method"] != "POST" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        state.route = scope["path"]
        context = RequestContext(state.caller, spans=[] if scoring.traced else None)
        scoring.check_room(context)
        state.context = context
        size, costs = length_of(state.received), self._costs.setdefault(scope["path"], {})

        async def send_and_release(message: Message) -> None:
            scoring.leave(context)  # what is sent needs no work any more
            await send(message)

        try:
            cheapest = _cheapest(costs) if size > FEW_BYTES else None
            if cheapest and (refusal := scoring.queue.admissions.refusal(context, size * cheapest)) is not None:
                self._refused_unread += 1
                if self._refused_unread % _PROBE_EVERY:
                    raise refusal
            await self._app(scope, receive, send_and_release)
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
    recent = [model for model in costs.values() if now - model.at < _COST_SAMPLE_SECONDS]
    if sum(len(model.last) for model in recent) < _MIN_COST_SAMPLES:
        return None
    return min(min(model.last) for model in recent)


class BodyAndDeadlineMiddleware:
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
            ClientLeft: the client disconnected.
        """
        state: RequestState = scope[STATE]
        context, buffered = state.context, self._reader.buffered
        if context is None:  # it asks no model
            await self._app(scope, receive, send)
            return
        context.deadline = perf_counter() + self._seconds
        request = HeldRequest(context.caller, lambda error: limit.end(error))
        leaving: asyncio.Task[None] | None = None

        async def send_in_chunks(message: Message) -> None:
            limit.disarm()
            content = message.get("body", b"")
            if len(content) > ANSWER_CHUNK_BYTES:
                if (abort := scope.get("extensions", {}).get(ABORT)) is not None:
                    request.end, request.stalled = lambda _: abort["call"](), True
                buffered.hold(request, len(content))
                for at in range(0, len(content) - ANSWER_CHUNK_BYTES, ANSWER_CHUNK_BYTES):
                    await send({**message, "body": content[at : at + ANSWER_CHUNK_BYTES], "more_body": True})
                message = {**message, "body": content[at + ANSWER_CHUNK_BYTES :]}
            await send(message)

        async def watch_disconnect() -> None:
            await receive()
            state.status = CLIENT_LEFT
            limit.end(ClientLeft)

        try:
            with TimeLimit(context, self._seconds) as limit:
                state.body = await self._reader.read(state, context, receive, request)
                leaving = asyncio.get_running_loop().create_task(watch_disconnect())
                await self._app(scope, receive, send_in_chunks)
        except TimeoutError:
            if state.arrived:
                raise TookTooLong(f"no answer within {self._seconds:g} seconds") from None
            raise BodyTimeout(f"no whole body within {self._seconds:g} seconds") from None
        finally:
            state.body = b""
            buffered.hold(request, 0)
            if leaving is not None:
                leaving.cancel()


class BodyReader:
    """Reads whole bodies, within their limits."""

    def __init__(self, max_bytes: int, buffered: BufferedBytes, on_arrival: Callable[[RequestContext], None]) -> None:
        """Prepare; `max_bytes` limits one body, `buffered` all of them; `on_arrival` is called at the end of each."""
        self.buffered = buffered
        self._on_arrival = on_arrival
        self._max_bytes = max_bytes

    async def read(self, state: RequestState, context: RequestContext, receive: Receive, request: HeldRequest) -> bytes:
        """The whole body of a request, which is what it holds from then on.

        Raises:
            Overloaded: too many requests are being answered.
            UnsupportedMedia: it is no JSON, or compressed.
            TooLarge: it has more bytes than it may; no more than that were read.
            ClientLeft: the client disconnected before the body was complete.
        """
        kind = state.received.get(b"content-type")
        if kind is not None and kind != b"application/json" and not _JSON_TYPE(kind):
            raise UnsupportedMedia("the body must be application/json")
        if state.received.get(b"content-encoding", b"identity") != b"identity":
            raise UnsupportedMedia("the body must not be compressed")
        if length_of(state.received) > self._max_bytes:
            raise self._too_large()
        body = await self._read(receive, request)
        self._on_arrival(context)
        state.arrived, request.stalled = True, False
        if len(body) > FEW_BYTES:
            self.buffered.hold(request, memory_of_body(len(body), ascii_only=body.isascii()))
        return body

    async def _read(self, receive: Receive, request: HeldRequest) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._max_bytes:
                raise self._too_large()
            if not message.get("more_body"):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            self.buffered.hold(request, size)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body of more than {self._max_bytes} bytes", limit=self._max_bytes)


def length_of(headers: Mapping[bytes, bytes]) -> int:
    """The body's Content-Length; 0 if it is missing or no number."""
    declared = headers.get(b"content-length", b"")
    return int(declared.lstrip(b"0")[:18] or b"0") if declared.isdigit() else 0  # Python refuses very many digits


def memory_of_body(size: int, *, ascii_only: bool = False) -> int:
    """Memory for a body and its decoded texts: a byte a character if they are ASCII, else up to four."""
    return size * (2 if ascii_only else 5)


class ScoringLimits:
    """What the middleware of all routes that ask a model shares."""

    def __init__(self, service: Service, *, traced: bool) -> None:
        """Prepare; of a `traced` request it is kept when each phase began."""
        self._settings = settings = service.settings
        self.max_in_flight = most = settings.max_in_flight  # requests received and not yet answered
        self.buffered = BufferedBytes(max(BUFFERED_BYTES_PER_REQUEST * most, memory_of_body(settings.max_body_bytes)))
        self.delayed_refusals = 0  # being held back now
        self._retry_at: OrderedDict[object, float] = OrderedDict()  # of each client, as its last refusal said
        self.queue = service.queue
        self._answering: set[RequestContext] = set()
        self.traced = traced

    def check_room(self, context: RequestContext) -> None:
        """Check that a request may be answered beside others.

        Raises:
            Overloaded: too many are being answered, and its caller has an equal share of the places.
        """
        if len(self._answering) >= self.max_in_flight:
            callers = Counter(each.caller for each in self._answering)
            if callers[context.caller] >= self.max_in_flight // len(callers):
                raise Overloaded(f"{self.max_in_flight} requests are being answered", limit=self.max_in_flight)

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
            self.queue.release(context)
            self._answering.discard(context)

    async def refuse(self, client: object, refusal: Overloaded) -> NoReturn:
        """Refuse a request; a client that asks again before its `Retry-After` waits until then, a second at most.

        A refusal costs little, but thousands a second cost the CPU that others' work needs.

        Raises:
            Overloaded: this one.
        """
        # Its traceback holds what it was raised through: bodies and their texts.
        refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
        early = min(self._retry_at.pop(client, 0.0) - perf_counter(), _LONGEST_REFUSAL)
        if early > 0 and self.delayed_refusals < self.max_in_flight:
            self.delayed_refusals += 1
            try:
                await asyncio.sleep(early)
            finally:
                self.delayed_refusals -= 1
        self._retry_at[client] = perf_counter() + refusal.seconds
        if len(self._retry_at) > _REMEMBERED:
            self._retry_at.popitem(last=False)
        raise refusal

    def wrap(self, app: ASGIApp, paths: Paths) -> ASGIApp:
        """The application, with the middleware of those of its paths that ask a model."""
        settings = self._settings
        reader = BodyReader(settings.max_body_bytes, self.buffered, self.arrived)
        return AdmissionMiddleware(BodyAndDeadlineMiddleware(app, reader, settings.request_timeout), self, paths)
