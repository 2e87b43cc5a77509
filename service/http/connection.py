"""uvicorn's connection with limits: on a request's head, on requests that wait, on an answer that nobody reads.

uvicorn waits for all of these without end. What a proxy limits besides (connections and requests of an address) is in
`deploy/haproxy.cfg`. Refusals have the format of other errors.
"""

import json
import logging
import resource
import secrets
import socket
from asyncio import TimerHandle
from functools import cache
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.errors import HeadTimeout, HeadTooLarge, NotHttp, RequestError
from service.observe.logs import ThrottledWarning
from service.settings import Settings

MAX_HEAD_BYTES = 65_536  # of a request line and its headers; or received without a byte of a body or a request's end
MAX_HEADERS = 100
MAX_TARGET_BYTES = 4096  # of a request's path and query, which is parsed at each route
MAX_WAITING_BYTES = 16_384  # of the bodies that come behind a request that is answered
NOTSENT_BYTES = 16_384  # of an answer, that the kernel takes without having sent them
MAX_PIPELINED = 16  # requests that wait behind one that is answered
SEND_SECONDS = 10.0  # after which a client that reads too little of an answer is disconnected
MIN_PACE = 4096  # bytes a second that it must read
PIECE_BYTES, FEW_BYTES = 16, 16_384  # on average, that pieces of a body must have, beyond a few bytes: each is a call
_SPARE_FILES = 64  # for models that are reloaded, Redis, the log
_HEADERS = b"content-type: application/json\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
_refused = ThrottledWarning(logging.getLogger(__name__), "connections are closed for what is sent on them")


@cache
def max_connections() -> int:
    """How many there may be: as many as files that the process may open, less some to spare."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else max(1, soft - min(_SPARE_FILES, soft // 2))


class Connection(HttpToolsProtocol):
    """The connection of one client."""

    def __init__(self, *arguments: Any, settings: Settings, **others: Any) -> None:
        """Begin; the arguments but `settings` are uvicorn's."""
        super().__init__(*arguments, **others)
        self._head_seconds = settings.request_timeout
        self._clock: TimerHandle | None = None  # while it waits for its client, and no answer is under way
        self._send_clock: TimerHandle | None = None  # while more is written than the client has read
        self._unsent = 0  # bytes, when that clock was started
        self._in_head = self._in_message = False
        self._idle_bytes = 0  # received since the last byte of a body, or the last request's end
        self._progressed = False  # whether the data that is being parsed has any of these
        self._header_bytes = self._body_bytes = self._pieces = 0  # of the request that is being parsed
        self._waiting_bytes = 0  # of the bodies of requests that wait
        self._body: list[bytes] = []  # pieces of it that the request has not been given yet
        self._error: RequestError | None = None
        self._refuses = False  # what still comes is not read
        self._answered: RequestResponseCycle | None = None  # of several in a row the one whose turn it is

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request, unless there are too many connections."""
        super().connection_made(transport)
        if (sock := transport.get_extra_info("socket")) is not None and sock.family != socket.AF_UNIX:
            # Else megabytes that nobody reads lie in the kernel, and what a slow client reads is seen in such lumps.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOTSENT_BYTES)
        if len(self.connections) > max_connections():
            _refused.note(reason=f"there are {max_connections()} connections, by the limit of open files")
            transport.abort()
        else:
            self._wait(self._head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks of a connection that has ended, and drop the requests that it still had waiting."""
        self._stop_waiting()
        self._stop_send_clock()
        self._unset_keepalive_if_required()  # which uvicorn leaves, and all of a connection with it, after a reset
        self._give_up()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data within the limits."""
        if self._refuses:
            return
        self._unset_keepalive_if_required()
        self._progressed = False
        self._parse(data)
        self._give_body()
        self._idle_bytes = 0 if self._progressed else self._idle_bytes + len(data)
        if self._refuses:
            self._stop_waiting()
        elif self._idle_bytes > MAX_HEAD_BYTES:
            self._refuse(HeadTooLarge(MAX_HEAD_BYTES))
        elif self.cycle is None or self.cycle.response_complete:  # no answer is under way
            self._wait(self._head_seconds if self._in_message else self.timeout_keep_alive)

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as upgrade:  # other protocols are not spoken: parsed again as if not asked for
                lines = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
                first = b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)
                data = b"\r\n".join([first, *lines, b"", b""]) + data[upgrade.args[0] :]
                self.parser = HttpRequestParser(self)
            except HttpParserError:
                error, self._error = self._error or NotHttp("Invalid HTTP request received."), None
                _refused.note(reason=error.message)
                self._refuse(error)
                return

    def on_message_begin(self) -> None:
        """Begin the head of a request, with a time of its own."""
        self._in_head = self._in_message = True
        self._header_bytes = self._body_bytes = self._pieces = 0
        self._stop_waiting()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, within the limits of a head."""
        self._header_bytes += len(name) + len(value) + 4
        if not self._in_head:  # uvicorn would take it for a header, after the key was checked
            self._stop_parsing(NotHttp("trailers are not accepted"))
        if self._header_bytes + len(self.url) > MAX_HEAD_BYTES:
            self._stop_parsing(HeadTooLarge(MAX_HEAD_BYTES))
        if len(self.headers) >= MAX_HEADERS:
            self._stop_parsing(HeadTooLarge(MAX_HEADERS, "headers"))
        if name.lower() != b"cookie":  # no route reads one, and each would parse it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin a request, unless its head is parsed again."""
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                self._stop_parsing(NotHttp("this is no proxy"))
            return
        if len(self.url) > MAX_TARGET_BYTES:
            self._stop_parsing(HeadTooLarge(MAX_TARGET_BYTES, what="path and query"))
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop_parsing(NotHttp(f"more than {MAX_PIPELINED} requests wait on one connection"))
        self._in_head, self._progressed = False, True
        self._stop_waiting()
        super().on_headers_complete()
        if not self.pipeline:
            self._answered = self.cycle

    def on_body(self, body: bytes) -> None:
        """Add to the body, unless it comes in pieces that are too small.

        All that came at once is given to the request together: uvicorn adds each piece to those before by a copy.
        """
        self._progressed = True
        self._body_bytes += len(body)
        self._pieces += 1
        if PIECE_BYTES * self._pieces > FEW_BYTES + self._body_bytes:
            self._stop_parsing(NotHttp("a body in very small pieces"))
        if self.pipeline:
            self._waiting_bytes += len(body)
            if self._waiting_bytes > MAX_WAITING_BYTES:
                self._drop_last()
                self._stop_parsing(NotHttp(f"bodies of more than {MAX_WAITING_BYTES} bytes wait on one connection"))
        self._body.append(body)

    def _drop_last(self) -> None:
        """Forget a request whose body is too much: those before it are answered, and the last of them as the last."""
        self.pipeline.popleft()
        self._body.clear()
        last = self.pipeline[0][0] if self.pipeline else self._answered
        assert last is not None, "one is under way"
        self.cycle = last

    def _give_body(self) -> None:
        if self._body:
            super().on_body(b"".join(self._body))
            self._body.clear()

    def on_message_complete(self) -> None:
        """End a request, unless its head is parsed again."""
        if not self.parser.should_upgrade():
            self._in_message, self._progressed = False, True
            self._stop_waiting()
            self._give_body()
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request; or for the client to read the last answer."""
        if self.pipeline:
            self._answered = self.pipeline[-1][0]
        super().on_response_complete()
        if not self.pipeline:
            self._waiting_bytes = 0
        if self.transport.is_closing():
            self._start_send_clock()

    def pause_writing(self) -> None:
        """Give the client a time in which to read."""
        super().pause_writing()
        self._start_send_clock()

    def resume_writing(self) -> None:
        """Stop the clock of a client that reads its answer again."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_send_clock()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        super().timeout_keep_alive_handler()
        self._start_send_clock()

    def _abort(self) -> None:
        self._give_up()
        self.transport.abort()

    def _give_up(self) -> None:
        """Tell the request that is answered that its client has left, and drop those that wait.

        uvicorn tells only the last that came, and a moment later; until then what is written raises.
        """
        self.pipeline.clear()
        if (cycle := self._answered) is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def _stop_parsing(self, error: RequestError) -> None:
        self._error = error
        raise error

    def _refuse(self, error: RequestError) -> None:
        """Answer an error as the last one; where answers are under way these are the last."""
        self._refuses = True
        cycle = self.cycle
        under_way = cycle is not None and not cycle.response_complete
        if under_way and (self.pipeline or cycle.response_started or not cycle.more_body):
            cycle.keep_alive = False
        elif not self.transport.is_closing():
            body = json.dumps(error.content(secrets.token_hex(12))).encode()
            head = b"%s%scontent-length: %d\r\n\r\n" % (STATUS_LINE[error.status], _HEADERS, len(body))
            self.transport.write(head + body)
            self.transport.close()
            self._start_send_clock()

    def _wait(self, seconds: float) -> None:
        if self._clock is None:
            self._clock = self.loop.call_later(seconds, self._waited)

    def _stop_waiting(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _waited(self) -> None:
        self._clock = None
        if self._in_head:
            self._refuse(HeadTimeout(self._head_seconds))
        else:
            self.timeout_keep_alive_handler()

    def _start_send_clock(self) -> None:
        if self._send_clock is None:
            self._unsent = self.transport.get_write_buffer_size()
            self._send_clock = self.loop.call_later(SEND_SECONDS, self._look_at_sending)

    def _stop_send_clock(self) -> None:
        if self._send_clock is not None:
            self._send_clock.cancel()
            self._send_clock = None

    def _look_at_sending(self) -> None:
        self._send_clock = None
        if self._unsent - self.transport.get_write_buffer_size() < MIN_PACE * SEND_SECONDS:
            self._abort()
        else:
            self._start_send_clock()
