"""What a request that asks a model may take: a place, time, and bytes of a body that has not arrived."""

import re
from collections.abc import Callable, Mapping, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.exchange import exchange_of
from service.errors import BodyTimeout, Overloaded, TookTooLong, TooLarge, UnsupportedMedia
from service.http.connection import CONNECTION, Connection
from service.http.crowd import client_of
from service.http.time_limit import ClientLeft, TimeLimit
from service.observe.timings import TIMINGS, Timings

_JSON_TYPE = re.compile(rb"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE).fullmatch


class Admission:
    """Refuses a request beyond the limit; those whose body has not arrived take nobody's place. Begins its timings."""

    def __init__(self, app: ASGIApp, busy: Callable[[], int], limit: int, *, spans: bool) -> None:
        """Prepare; `busy` is the number of requests received and not yet answered."""
        self._app = app
        self._busy = busy
        self._limit = limit
        self._spans = spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            Overloaded: too many requests are being answered.
        """
        if self._busy() > self._limit:
            raise Overloaded(f"{self._limit} requests are being answered", limit=self._limit)
        exchange_of(scope).timings = timings = Timings(self._spans)
        TIMINGS.set(timings)
        await self._app(scope, receive, send)


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

        try:
            with TimeLimit(self._seconds) as limit:
                exchange.give_up = limit.end
                if connection is not None:
                    connection.when_left(limit.leave)
                await self._app(scope, receive, in_time)
        except TimeoutError:
            if exchange.arrived:
                raise TookTooLong(f"no answer within {self._seconds:g} seconds") from None
            raise BodyTimeout(f"no whole body within {self._seconds:g} seconds") from None
        finally:
            exchange.give_up = None


class Held:
    """The bodies that have begun to arrive and not ended, by the address of who sends them.

    Beyond the limit of all their bytes, the oldest of the address with the most bytes are given up: one caller cannot
    take the room of others.
    """

    def __init__(self, most: int) -> None:
        """Begin with none; `most` is in bytes."""
        self.most = most
        self.bytes = 0
        self.bodies = 0
        self._of: dict[str, dict[Body, None]] = {}  # the oldest first

    def add(self, body: "Body") -> None:
        """Hold a body that has begun to arrive."""
        self._of.setdefault(body.address, {})[body] = None
        self.bodies += 1

    def drop(self, body: "Body") -> None:
        """Hold a body no longer; no effect the second time."""
        bodies = self._of.get(body.address, {})
        if body in bodies:
            del bodies[body]
            self.bodies -= 1
            self.bytes -= body.size
            if not bodies:
                del self._of[body.address]

    def grew(self, body: "Body", size: int) -> None:
        """Count more bytes of a body, and give up others, or this one, where those are too many."""
        body.size += size
        self.bytes += size
        while self.bytes > self.most:
            bodies = max(self._of.values(), key=lambda each: sum(body.size for body in each))
            oldest = next(iter(bodies))
            self.drop(oldest)
            oldest.give_up(Overloaded(f"bodies of {self.most} bytes are being received", limit=self.most))


class Body:
    """A body that arrives."""

    __slots__ = ("address", "give_up", "size")

    def __init__(self, address: str, give_up: Callable[[Exception], None]) -> None:
        self.address = address
        self.give_up = give_up
        self.size = 0


class Arrival:
    """Reads the whole body, within its limits; what is behind it receives one message."""

    def __init__(self, app: ASGIApp, most: int, held: Held, media: Sequence[bytes]) -> None:
        """Prepare; `most` is in bytes, `media` are types of bodies besides JSON."""
        self._app = app
        self._most = most
        self._held = held
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
        message = await receive()
        if message.get("more_body"):
            assert exchange.give_up is not None, "there is a time limit"
            body = Body(client_of((scope.get("client") or ("",))[0]), exchange.give_up)
            message = await self._rest(message, body, receive)
        if message["type"] == "http.disconnect":
            raise ClientLeft
        if len(message.get("body", b"")) > self._most:
            raise self._too_large()
        exchange.arrived = True

        async def whole() -> Message:
            return {"type": "http.request", "body": message.get("body", b""), "more_body": False}

        await self._app(scope, whole, send)

    def _check(self, headers: Mapping[bytes, bytes]) -> None:
        kind = headers.get(b"content-type")
        if kind is not None and kind != b"application/json" and kind not in self._media and not _JSON_TYPE(kind):
            known = " or ".join(["application/json", *(each.decode() for each in self._media)])
            raise UnsupportedMedia(f"the body must be {known}")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise UnsupportedMedia("the body must not be compressed")
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._most:
            raise self._too_large()

    async def _rest(self, message: Message, body: Body, receive: Receive) -> Message:
        """The whole body in one message, of which this was the first."""
        chunks = []
        self._held.add(body)
        try:
            while True:
                chunks.append(message.get("body", b""))
                self._held.grew(body, len(chunks[-1]))
                if body.size > self._most:
                    raise self._too_large()
                if not message.get("more_body"):
                    return {**message, "body": b"".join(chunks)}
                message = await receive()
        finally:
            self._held.drop(body)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a body of more than {self._most} bytes", limit=self._most)
