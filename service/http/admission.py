"""Middleware of the routes that ask a model: limits on requests in flight, their time, bodies and buffered bytes."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.admission import RequestContext
from service.errors import BodyTimeout, Overloaded, TookTooLong, TooLarge, UnsupportedMedia
from service.http.middleware import CLIENT_LEFT, ClientLeft
from service.observe.logs import ThrottledWarning
from service.routes.paths import Paths
from service.routes.routing import STATE, RequestState, max_counts
from service.service import Service

BUFFERED_BYTES_PER_REQUEST = 163_840  # bodies, also parsed, and unsent answers: 160 MiB where 1,024 may be in flight
ANSWER_CHUNK_BYTES = 65_536
_FEW_BYTES = 400  # of a body, which takes less than `BUFFERED_BYTES_PER_REQUEST` whatever it has
_OBJECT_BYTES, _VALUE_BYTES = 240, 72  # of an object that is parsed; and of a list, a key, or another value
_TEXT_BYTES = 1024  # of each string: half of them or more are texts, each with an embedding and a result
_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch
_over_limit = ThrottledWarning(
    logging.getLogger(__name__),
    "bodies and unread answers take too much memory: requests are refused",
)


@dataclass(eq=False, slots=True)
class HeldRequest:
    """A request and its share of the buffered bytes."""

    caller: str
    size: int = 0


class BufferedBytes:
    """All bytes that are held.

    A caller may hold half of what others leave, so that the next one finds room too; nothing that is held is dropped.
    """

    def __init__(self, limit: int) -> None:
        """Begin with none; `limit` is in bytes."""
        self.limit = limit
        self.bytes = 0
        self._by_caller: Counter[str] = Counter()

    def hold(self, request: HeldRequest, size: int) -> None:
        """Hold `size` bytes of a request in all from now on.

        Raises:
            Overloaded: these are too many; what the request held before it holds on.
        """
        more = size - request.size
        held = self._by_caller[request.caller]
        most = (self.limit - self.bytes + held) // 2
        if more > 0 and held + more > most:
            _over_limit.note(bytes=self.bytes, caller=request.caller)
            raise Overloaded(f"requests and answers of {held} bytes are held, of {most}", limit=most)
        self.bytes += more
        request.size = size
        self._by_caller[request.caller] += more
        if not self._by_caller[request.caller]:
            del self._by_caller[request.caller]


class ScoringMiddleware:
    """Lets in who asks a model, reads the body, and ends the work when its time is over, or when the client leaves.

    A request whose body has not arrived takes no place. What is behind it finds the body in the state. A large answer
    is sent in pieces, each when the client has read those before it, and counts until then as what its request holds.
    """

    def __init__(self, app: ASGIApp, limits: "ScoringLimits", paths: Paths) -> None:
        """Put it before an application with these paths."""
        self._app = app
        self._limits = limits
        self._paths = paths.scoring
        self._seconds = limits.settings.request_timeout
        self._max_bytes = limits.settings.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            Overloaded: too many requests are being answered, too much work is waiting, or too much is held.
            BodyTimeout: the body did not arrive in time.
            TookTooLong: there is no answer in time.
            ClientLeft: the client disconnected.
        """
        limits, state = self._limits, scope[STATE]
        if scope["method"] != "POST" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        state.route = scope["path"]
        context = RequestContext(state.caller, spans=[] if limits.traced else None)
        limits.check_room(context)
        state.context, buffered = context, limits.buffered
        context.deadline = perf_counter() + self._seconds
        leaving: asyncio.Task[None] | None = None
        left = False

        async def send_in_chunks(message: Message) -> None:
            limits.leave(context)  # what is sent needs no work any more
            if message["type"] == "http.response.start":  # the last moment to refuse it
                size = length_of(dict(message["headers"]))
                if size > ANSWER_CHUNK_BYTES:
                    buffered.hold(request, size)
            if not state.started and not limit.expired():
                limit.reschedule(None)  # the rest may take however long
            content = message.get("body", b"")
            if len(content) > ANSWER_CHUNK_BYTES:
                for at in range(0, len(content) - ANSWER_CHUNK_BYTES, ANSWER_CHUNK_BYTES):
                    await send({**message, "body": content[at : at + ANSWER_CHUNK_BYTES], "more_body": True})
                message = {**message, "body": content[at + ANSWER_CHUNK_BYTES :]}
            await send(message)

        async def watch_disconnect() -> None:
            nonlocal left
            await receive()
            state.status = CLIENT_LEFT
            if not state.started and not limit.expired():
                left = True
                limit.reschedule(0)

        request = HeldRequest(context.caller)
        state.hold = lambda size: buffered.hold(request, request.size + size)
        try:
            async with asyncio.timeout(self._seconds) as limit:
                context.timer = limit
                state.body = await self._body(state, context, receive, request)
                leaving = asyncio.get_running_loop().create_task(watch_disconnect())
                await self._app(scope, receive, send_in_chunks)
        except TimeoutError as error:
            if left:
                raise ClientLeft from error
            if state.arrived:
                raise TookTooLong(f"no answer within {self._seconds:g} seconds") from None
            raise BodyTimeout(f"no whole body within {self._seconds:g} seconds") from None
        finally:
            state.body = b""
            buffered.hold(request, 0)
            limits.leave(context)
            if leaving is not None:
                leaving.cancel()

    async def _body(
        self, state: RequestState, context: RequestContext, receive: Receive, request: HeldRequest
    ) -> bytes:
        """The whole body of a request, which is what it holds from then on.

        Raises:
            Overloaded: too many requests are being answered, or too much is held.
            UnsupportedMedia: it is no JSON, or compressed.
            TooLarge: it has more bytes than it may; no more than that were read.
            ClientLeft: the client disconnected before the body was complete.
        """
        kind = state.received.get(b"content-type")
        if kind is None and b"origin" in state.received:  # of any origin: browsers do not ask before they send this
            raise UnsupportedMedia("a page must name the type of its body, application/json")
        if kind is not None and kind != b"application/json" and not _JSON_TYPE(kind):
            raise UnsupportedMedia("the body must be application/json")
        if state.received.get(b"content-encoding", b"identity") != b"identity":
            raise UnsupportedMedia("the body must not be compressed")
        if length_of(state.received) > self._max_bytes:
            raise self._too_large()
        body = await self._read(receive, request)
        self._limits.arrived(context)
        state.arrived = True
        if len(body) > _FEW_BYTES and (size := self._limits.memory_of(body)) > BUFFERED_BYTES_PER_REQUEST:
            self._limits.buffered.hold(request, size)
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
            self._limits.buffered.hold(request, size)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body of more than {self._max_bytes} bytes", limit=self._max_bytes)


def length_of(headers: Mapping[bytes, bytes]) -> int:
    """The body's Content-Length; 0 if it is missing or no number."""
    declared = headers.get(b"content-length", b"")
    return int(declared.lstrip(b"0")[:18] or b"0") if declared.isdigit() else 0  # Python refuses very many digits


class ScoringLimits:
    """What the middleware of all routes that ask a model shares."""

    def __init__(self, service: Service, *, traced: bool) -> None:
        """Prepare; of a `traced` request it is kept when each phase began."""
        self.settings = settings = service.settings
        self.max_in_flight = most = settings.max_in_flight  # requests received and not yet answered
        self.buffered = BufferedBytes(max(BUFFERED_BYTES_PER_REQUEST * most, 10 * settings.max_body_bytes))
        self._most = max_counts(settings, strict=False)  # with more a body is refused before it is parsed
        self._most_texts = 2 * max(settings.max_candidates, 2 * settings.max_pairs, settings.max_sentences)
        self.queue = service.queue
        self._answering: set[RequestContext] = set()
        self.traced = traced

    def memory_of(self, body: bytes) -> int:
        """Memory for a body, its decoded texts, all objects that it is parsed to, and what is made of its texts.

        A character is a byte if all are ASCII, else up to four.
        """
        characters = np.frombuffer(body, np.uint8)  # counted in a quarter of the time of `bytes.count`
        objects, lists, commas, colons, quotes = (int(np.count_nonzero(characters == ord(x))) for x in '{[,:"')
        parsed = _OBJECT_BYTES * min(objects, self._most.values)
        parsed += _VALUE_BYTES * min(lists + commas + colons, self._most.values + self._most.keys)
        parsed += _TEXT_BYTES * min(quotes // 2, self._most_texts)
        return min(len(body) * (2 if body.isascii() else 5) + parsed, self.buffered.limit // 2)

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
