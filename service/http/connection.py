"""uvicorn's connection with limits: on the head of a request, on pipelined requests, on the time an answer is unread.

uvicorn itself waits without limit for the request line and headers, and for a client that does not read. This class
also answers what is not HTTP, in the format of other errors, and notices at any time that the client has left.
This file and `server.py` alone use what uvicorn does not document; `tests/service/http/test_uvicorn.py` has the names.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import Scope
from uvicorn._types import HTTPScope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.errors import HeadTimeout, HeadTooLarge, NotHttp, Overloaded, RequestError
from service.http.connection_tracker import Alarm, ClientLeft, ConnectionTracker, MemoryLimiter, client_of
from service.observe.logs import ThrottledWarning
from service.settings import Settings

log = logging.getLogger(__name__)

_CONNECTION = "semblance.connection"  # the `Connection`, in a scope's extensions
CLOSE = (b"connection", b"close")
MAX_HEAD_BYTES = 65_536  # of a request line and its headers
MAX_HEADERS = 100  # each costs some 200 bytes, however short it is
MAX_GAP_BYTES = 16_384  # received without a byte of a body while one is expected: sizes of chunks, and what they carry
PIECE_BYTES = 16  # on average, that pieces of a body must have: each costs a call
LINGER_SECONDS = 2.0  # in which a client may read the answer to a request whose body it still sends
MAX_PIPELINED = 16  # waiting requests of one connection
LEAST_PACE = 4096  # bytes a second that a slow client must read of an answer
FEW_BYTES = 16_384  # of a body: so little is not counted in what is held; the number of requests bounds it
_REQUEST_BYTES, _HEADER_BYTES = 8192, 256  # that a request takes beside its texts, and each of its headers
_HEADERS = b"content-type: application/json\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
_refused = ThrottledWarning(log, "connections are closed for what is sent on them")


class Connection(HttpToolsProtocol):
    """The connection of one client."""

    def __init__(
        self,
        *arguments: Any,
        settings: Settings,
        tracker: ConnectionTracker,
        held: MemoryLimiter,
        made: Callable[[], None],
        **others: Any,
    ) -> None:
        """Start the limits of a new connection; `made` is called when it is made, the other arguments are uvicorn's."""
        super().__init__(*arguments, **others)
        self.left = False  # whether the client left before its answer was complete
        self.address = ""
        self.told = 0.0  # when its caller was told to ask again, by `perf_counter`
        self._tracker = tracker
        self._held = held
        self._holds = False  # whether it has an entry there
        self._taken_bytes = 0  # of the body, that the application has
        self._unread = False  # whether more is written than the client reads
        self._made = made
        self._seconds = settings.request_timeout  # for the head of a request
        self._clock = Alarm()
        self._in_head = False
        self._head_bytes = 0  # that no head has ended yet
        self._header_bytes = 0  # of the head that is being parsed
        self._gap_bytes = self._body_bytes = self._pieces = 0
        self._lost = asyncio.Event()
        self._in_body = self._progressed = self._ended = False  # the last two: within the data that is being parsed
        self._send_seconds = settings.send_timeout  # after which a client that does not read is disconnected
        self._send_clock = Alarm()
        self._unsent = 0
        self._running: RequestResponseCycle | None = None  # the request being answered
        self._end: Callable[[Exception | type[Exception]], None] | None = None  # ends its work
        self._error: RequestError | None = None  # found in a callback of the parser
        self._deaf = False  # whether incoming data is ignored; the answers under way are the last ones

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the clock for the first request."""
        super().connection_made(transport)
        self.address = client_of(self.client[0] if self.client else "")
        self._tracker.add(self)
        self._clock.start(self.timeout_keep_alive, self._give_up)  # as long as between two requests
        self._made()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the work for the client."""
        self._clock.stop()
        self._send_clock.stop()
        self._tracker.remove(self)
        self._held.hold(self, 0)
        self._lost.set()
        running = self._running
        if running is not None and not running.response_complete:
            self.left = running.disconnected = True  # uvicorn notifies only the last of several pipelined requests
            running.message_event.set()
            if self._end is not None:
                self._end(ClientLeft)
        self.pipeline.clear()
        super().connection_lost(exc)

    def ended_by(self, end: Callable[[Exception | type[Exception]], None]) -> None:
        """Set what ends the work for the current request, by an error: the client leaves, or holds too much."""
        self._end = end

    def took(self, size: int) -> None:
        """The application has so many bytes of the current request's body, or of what it made of it."""
        self._taken_bytes = size
        self._account()

    @property
    def stalled(self) -> bool:
        """Whether it waits for its client: for the rest of a request, or for an answer to be read."""
        return self._unread or not self._tracker.is_busy(self)

    def give_up(self, error: Overloaded) -> None:
        """End the current request, so that nothing of it is held."""
        running = self._running
        if self._unread or self.pipeline:
            self.transport.abort()
        elif self._end is not None and running is not None and not running.response_started:
            self._end(error)
        else:
            self._refuse(error)

    def expects_much(self) -> bool:
        """Whether more of the current request's body may come than is worth reading after its answer."""
        if self._running is None or not self._running.more_body:
            return False
        headers = dict(self._running.scope["headers"])
        declared = headers.get(b"content-length", b"")
        # Without its 100 a client that expects one sends its next request in the place of the body.
        return not declared.isdigit() or int(declared) > MAX_GAP_BYTES or b"expect" in headers

    async def linger(self) -> None:
        """Read no more, and wait until the client has left, or had the time to read its answer."""
        self._deaf = True
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                await self._lost.wait()

    def leave(self) -> None:
        """Close a connection that is idle or waits for the rest of a request, to make room."""
        running = self._running
        if running is not None and running.more_body and not running.response_started:
            self._refuse(Overloaded("there are as many connections as this process may have"))
        elif not self.transport.is_closing():
            self._close()

    def data_received(self, data: bytes) -> None:
        """Parse data, and set the clock and the limit for the head."""
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        was_in_head = self._in_head
        self._progressed = self._ended = False
        self._parse(data)
        if self._deaf:
            self._clock.stop()
            return
        self._in_head = self.cycle is None or self.cycle.scope is not self.scope
        if self._in_head:
            if not was_in_head:
                self._clock.stop()
            # Where a request ended in the same data, its share is not known.
            self._head_bytes = self._head_bytes + len(data) if was_in_head else len(data) * (not self._ended)
            self._clock.start(self._seconds, self._give_up)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(HeadTooLarge(MAX_HEAD_BYTES))
        elif self.cycle.response_complete:  # empty lines, or the rest of a body that is answered
            self._clock.start(self.timeout_keep_alive, self._give_up)
        else:
            self._clock.stop()
            self._gap_bytes = 0 if self._progressed or not self.cycle.more_body else self._gap_bytes + len(data)
            if self._gap_bytes > MAX_GAP_BYTES:
                self._refuse(NotHttp(f"{MAX_GAP_BYTES} bytes of a request in chunks without one of its body"))
                return
        waiting = self._in_head or self.cycle.more_body or self.pipeline
        if self._holds or waiting or len(self.cycle.body) > FEW_BYTES:
            self._account()
        if self.flow.read_paused and self._waiting_bytes() <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()  # to notice when the client leaves

    def _waiting_bytes(self) -> int:
        """Bytes of bodies received and not yet read by the application."""
        if self.pipeline:
            return sum(len(cycle.body) for cycle, _ in self.pipeline)
        return len(self.cycle.body) if self.cycle is not None and self.cycle.more_body else 0

    def _account(self) -> None:
        """Count what is held of this connection; of a small request that has arrived nothing."""
        size = self._taken_bytes
        if self._in_head:
            size += 2 * self._head_bytes  # by the parser too
        running = self._running
        if running is not None and not running.response_complete:
            if running.more_body or self.pipeline or self._unread:
                size += _size_of(running)
            elif len(running.body) > FEW_BYTES:
                size += len(running.body)
        size += sum(_size_of(cycle) for cycle, _ in self.pipeline)
        if self._unread:
            size += self.transport.get_write_buffer_size()
        if (size or self._holds) and not self._lost.is_set():
            self._holds = size > 0
            self._held.hold(self, size)

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as upgrade:  # other protocols are not supported: ignored
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
            except HttpParserError:
                error, self._error = self._error or NotHttp("Invalid HTTP request received."), None
                _refused.note(reason=error.message)
                self._refuse(error)
                return

    def _head_without_upgrade(self) -> bytes:
        first = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        lines = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([first, *lines, b"", b""])

    def on_message_begin(self) -> None:
        """Start counting the head of a new request."""
        self._in_body = False
        self._header_bytes = self._body_bytes = self._pieces = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header to the head of the request.

        Raises:
            RequestError: the head is too large, or this is a trailer; the parser stops.
        """
        if self._in_body:  # uvicorn would take it for a header, after the key was checked
            self._stop_parsing("trailers are not accepted")
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > MAX_HEAD_BYTES or len(self.headers) >= MAX_HEADERS:
            few = self._header_bytes <= MAX_HEAD_BYTES
            self._error = HeadTooLarge(MAX_HEADERS, "headers") if few else HeadTooLarge(MAX_HEAD_BYTES)
            raise self._error
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Add to the body.

        Raises:
            NotHttp: it comes in pieces that are too small, and the parser stops.
        """
        self._progressed = True
        self._body_bytes += len(body)
        self._pieces += 1
        if PIECE_BYTES * self._pieces > MAX_GAP_BYTES + self._body_bytes:
            self._stop_parsing("a body in very small pieces")
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """Check the head of a request; its task begins in the event loop's next iteration.

        Raises:
            NotHttp: the request is refused, and the parser stops.
        """
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                self._stop_parsing("this is no proxy")
            return  # the head is parsed again without that header
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop_parsing(f"more than {MAX_PIPELINED} requests wait on one connection")
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (not hosts and self.parser.get_http_version() != "1.0"):
            self._stop_parsing(f"a request has one Host header; found {hosts}")
        self._in_body = self._progressed = True
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.scope is self.scope:
            extensions: dict[str, Any] = {_CONNECTION: self}
            self.scope["extensions"] = extensions

    def _stop_parsing(self, why: str) -> None:
        self._error = NotHttp(why)
        raise self._error

    def on_message_complete(self) -> None:
        """End a request, unless its head is parsed again."""
        self._ended = True
        if not self.parser.should_upgrade():
            super().on_message_complete()
            if self._running is self.cycle and not self.cycle.response_complete:
                self._tracker.busy(self)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if not cycle.more_body:  # it waited behind others
            self._tracker.busy(self)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Forget the answered request: an idle connection holds nothing of it.

        Its extensions refer to the request, which refers to them: left alone, all requests would wait for the garbage
        collector, and their thousands of objects would be freed in one pause of tens of milliseconds.
        """
        self._end = None
        self._taken_bytes = 0
        if self._running is not None:
            self._running.scope.get("extensions", {}).clear()
            if self._running is self.cycle and self.scope is self.cycle.scope:  # no other head has begun
                self.url, self.headers = b"", []
                self.scope = self.cycle.scope = cast(HTTPScope, {})
        self._tracker.idle(self)
        super().on_response_complete()
        if self._holds:
            self._account()
        if self.transport.is_closing():
            self._start_send_clock()

    def pause_writing(self) -> None:
        """Start the clock for a client that does not read."""
        super().pause_writing()
        self._start_send_clock()
        self._unread = True
        self._account()

    def resume_writing(self) -> None:
        """Stop the clock for a client that reads slowly."""
        super().resume_writing()
        self._unread = False
        self._account()
        if not self.transport.is_closing():
            self._send_clock.stop()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        if not self.transport.is_closing():
            self._close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(NotHttp(msg))

    def _close(self) -> None:
        """Close when everything is sent, or when the client does not read it in time."""
        self.transport.close()
        self._start_send_clock()

    def _start_send_clock(self) -> None:
        if self._send_clock.start(self._send_seconds, self._look_at_sending):
            self._unsent = self.transport.get_write_buffer_size()

    def _look_at_sending(self) -> None:
        """Disconnect a client that reads too little."""
        before, now = self._unsent, self.transport.get_write_buffer_size()
        if before - now < LEAST_PACE * self._send_seconds:
            self.transport.abort()
        else:
            self._start_send_clock()

    def _give_up(self) -> None:
        if self._in_head:
            self._refuse(HeadTimeout(self._seconds))
        else:
            self._close()

    def _refuse(self, error: RequestError) -> None:
        """Send an error as the last answer, unless earlier answers are under way: then these are the last."""
        self._deaf = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and (self.pipeline or not cycle.more_body):
            cycle.keep_alive = False
        elif not self.transport.is_closing():
            body = json.dumps(error.content(secrets.token_hex(12))).encode()
            head = b"%s%scontent-length: %d\r\n\r\n" % (STATUS_LINE[error.status], _HEADERS, len(body))
            self.transport.write(head + body)
            self._close()


def connection_of(scope: Scope) -> Connection | None:
    """The connection that a request came on; None where it came on none, as in tests."""
    connection: Connection | None = scope.get("extensions", {}).get(_CONNECTION)
    return connection


def _size_of(cycle: RequestResponseCycle) -> int:
    """What a request takes with what has arrived of its body, in bytes."""
    scope = cycle.scope
    texts = sum(len(name) + len(value) + _HEADER_BYTES for name, value in scope["headers"])
    return _REQUEST_BYTES + texts + 3 * (len(scope["raw_path"]) + len(scope["query_string"])) + len(cycle.body)
