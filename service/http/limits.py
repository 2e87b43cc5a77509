"""What a request that asks a model may take: a place, time, and bytes of a body."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import NoReturn

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.exchange import exchange_of
from service.errors import BodyTimeout, Overloaded, TookTooLong, TooLarge, UnsupportedMedia
from service.http.connection import CONNECTION, FEW_BYTES, Connection
from service.http.time_limit import ClientLeft, TimeLimit
from service.observe.timings import TIMINGS, Timings

_LONGEST_REFUSAL = 1.0  # seconds
_COSTS = 16  # requests of a route by which the work of the next is told before it is read
Refusal = Callable[[Timings, float], Overloaded | None]

_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch


class Hasty:
    """Callers who ask again sooner than a refusal told them: the next refusal takes until then, a second at most.

    A refusal costs little, but thousands a second cost the CPU that others' work needs.
    """

    def __init__(self, most: int) -> None:
        """Begin with none; more than `most` are not made to wait."""
        self.waiting = 0
        self._most = most

    async def refuse(self, connection: Connection | None, refusal: Overloaded) -> NoReturn:
        """Refuse the request of a connection.

        Raises:
            Overloaded: this one.
        """
        if connection is not None:
            early = min(connection.told - perf_counter(), _LONGEST_REFUSAL)
            if early > 0 and self.waiting < self._most:
                self.waiting += 1
                try:
                    await asyncio.sleep(early)
                finally:
                    self.waiting -= 1
            connection.told = perf_counter() + refusal.seconds
        raise refusal


class AdmissionMiddleware:
    """Refuses a request beyond the limit, or with too much work; begins its timings.

    Those whose body has not arrived take nobody's place. What a body means in work is not known before it is read; but
    where even the cheapest of the route's last requests would, by its length, be refused, reading it would be in vain.
    """

    def __init__(
        self, app: ASGIApp, busy: Callable[[], int], limit: int, refusal: Refusal, hasty: Hasty, *, spans: bool
    ) -> None:
        """Wrap the application of a route.

        Args:
            app: of a route.
            busy: the number of requests received and not yet answered.
            limit: of that.
            refusal: why a request with these timings and so many expected seconds of work is not let in, or None.
            hasty: those of all routes.
            spans: whether timings keep when each phase began.
        """
        self._app = app
        self._busy = busy
        self._limit = limit
        self._refusal = refusal
        self._hasty = hasty
        self._spans = spans
        self._costs: deque[float] = deque(maxlen=_COSTS)  # expected seconds a byte, of the last requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            Overloaded: too many requests are being answered, or too much work is waiting.
        """
        if self._busy() - self._hasty.waiting > self._limit:
            raise Overloaded(f"{self._limit} requests are being answered", limit=self._limit)
        exchange = exchange_of(scope)
        exchange.timings = timings = Timings(self._spans)
        TIMINGS.set(timings)
        size = length_of(exchange.received)
        try:
            if size > FEW_BYTES and len(self._costs) == _COSTS:
                refusal = self._refusal(timings, size * min(self._costs))
                if refusal is not None:
                    raise refusal
            await self._app(scope, receive, send)
        except Overloaded as refusal:
            await self._hasty.refuse(scope.get("extensions", {}).get(CONNECTION), refusal)
        finally:
            if size > FEW_BYTES and (timings.expected or exchange.status == 200):
                self._costs.append(timings.expected / size)


class Deadline:
    """Ends the work when its time is over, or when the client leaves; not while the answer is being sent."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            BodyTimeout: the body did not arrive in time.
            TookTooLong: there is no answer in time.
            ClientLeft: nobody wants one.
        """
        exchange = exchange_of(scope)
        connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)

        async def in_time(message: Message) -> None:
            limit.stop()
            await send(message)

        if exchange.timings is not None:
            exchange.timings.until = perf_counter() + self._seconds
        try:
            with TimeLimit(self._seconds, exchange.timings.free if exchange.timings else float) as limit:
                if connection is not None:
                    connection.ended_by(limit.end)
                await self._app(scope, receive, in_time)
        except TimeoutError:
            if exchange.arrived:
                raise TookTooLong(f"no answer within {self._seconds:g} seconds") from None
            raise BodyTimeout(f"no whole body within {self._seconds:g} seconds") from None


class BodyReader:
    """Reads the whole body, within its limits; what is behind it receives one message."""

    def __init__(self, app: ASGIApp, most: int, media: Sequence[bytes]) -> None:
        """Prepare; `most` is in bytes, `media` are types of bodies besides JSON."""
        self._app = app
        self._most = most
        self._media = media

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with its body.

        Raises:
            UnsupportedMedia: it is no JSON, or compressed.
            TooLarge: it has more bytes than it may; no more than that were read.
            ClientLeft: it ended half way.
        """
        exchange = exchange_of(scope)
        self._check(exchange.received)
        connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)
        body = await self._read(receive, connection)
        exchange.arrived = True
        if connection is not None and len(body) > FEW_BYTES:
            connection.took(held_of(len(body), ascii_only=body.isascii()))

        async def whole() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, whole, send)

    def _check(self, headers: Mapping[bytes, bytes]) -> None:
        kind = headers.get(b"content-type")
        if kind is not None and kind != b"application/json" and kind not in self._media and not _JSON_TYPE(kind):
            known = " or ".join(["application/json", *(each.decode() for each in self._media)])
            raise UnsupportedMedia(f"the body must be {known}")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise UnsupportedMedia("the body must not be compressed")
        if length_of(headers) > self._most:
            raise self._too_large()

    async def _read(self, receive: Receive, connection: Connection | None) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            # A copy, because asyncio reads into 256 KiB and cuts off what stayed empty, which leaves holes: bodies of
            # 256 MB took 1.7 GB.
            chunks.append(bytes(memoryview(message.get("body", b""))))
            size += len(chunks[-1])
            if size > self._most:
                raise self._too_large()
            if not message.get("more_body"):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            if connection is not None:
                connection.took(size)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body of more than {self._most} bytes", limit=self._most)


def length_of(headers: Mapping[bytes, bytes]) -> int:
    """Bytes of a body by its head; 0 where it does not say."""
    declared = headers.get(b"content-length", b"")
    return int(declared) if declared.isdigit() else 0


def held_of(size: int, *, ascii_only: bool = False) -> int:
    """Bytes that a body of this size takes with its texts, which may need four times as many."""
    return size * (2 if ascii_only else 5)
