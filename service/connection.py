"""A connection of uvicorn's, with an end to how long and how large the head of a request may be.

Uvicorn itself waits forever for a request's first line and headers, and keeps whatever arrives of them. What is not
HTTP at all is answered here too, in the shape of every other error. And an answer that is whole already can be sent as
such: uvicorn's two messages, with every header looked at by itself, cost more than finding a score does.
"""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.errors import HeadTimeout, HeadTooLarge, NotHttp, RequestError

# (status, header lines each with its end, body) -> whether it was sent. False where the sender must wait, the client
# has left, or wants no body: there the messages of ASGI do what is right.
SendWhole = Callable[[int, bytes, bytes], bool]
WHOLE = "semblance.whole"  # a `SendWhole`, in a scope's extensions
CLOSE = (b"connection", b"close")
MAX_HEAD_BYTES = 65_536  # on top of what arrived together with its beginning, some 256 KiB at most
_HEADERS = b"content-type: application/json\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"


class Connection(HttpToolsProtocol):
    """One client's connection, as the server makes it."""

    def __init__(self, *arguments: Any, seconds: float, made: Callable[[], None], **others: Any) -> None:
        """Make one, as uvicorn does.

        Args:
            arguments: uvicorn's own.
            seconds: that may pass while nothing whole has been asked.
            made: called when the client is there.
            others: uvicorn's own.
        """
        super().__init__(*arguments, **others)
        self._made = made
        self._seconds = seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """A client is there."""
        super().connection_made(transport)
        self._start_clock(self.timeout_keep_alive)  # as long as between two requests
        self._made()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """It says something."""
        was_in_head = self._in_head
        super().data_received(data)
        self._in_head = self.cycle is None or self.cycle.scope is not self.scope
        if self._in_head:
            if not was_in_head:
                self._stop_clock()
            self._head_bytes = self._head_bytes + len(data) if was_in_head else 0
            self._start_clock(self._seconds)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(HeadTooLarge(MAX_HEAD_BYTES))
        elif self.cycle.response_complete:  # the rest of a body that was refused, or empty lines
            self._start_clock(self._seconds)
        elif self._deadline is not None:
            self._stop_clock()

    def on_headers_complete(self) -> None:
        """A request's head is whole; its task begins in the event loop's next turn."""
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.scope is self.scope:
            self.scope["extensions"] = {WHOLE: partial(_send_whole, self.cycle)}  # type: ignore[dict-item]  # ours

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(NotHttp(msg))

    def _start_clock(self, seconds: float) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(seconds, self._give_up)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._in_head:
            self._refuse(HeadTimeout(self._seconds))
        else:
            self.transport.close()

    def _refuse(self, error: RequestError) -> None:
        """Answer for the last time; requests before this one that are still being answered are the last themselves."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and (self.pipeline or not cycle.more_body):
            cycle.keep_alive = False
        elif not self.transport.is_closing():
            body = error.body(secrets.token_hex(12))
            head = b"%s%scontent-length: %d\r\n\r\n" % (STATUS_LINE[error.status], _HEADERS, len(body))
            self.transport.write(head + body)
            self.transport.close()


def _send_whole(cycle: RequestResponseCycle, status: int, headers: bytes, body: bytes) -> bool:
    """A `SendWhole`: what `RequestResponseCycle.send` does with the two messages of an answer with its length."""
    if cycle.disconnected or cycle.flow.write_paused or cycle.response_started or cycle.scope["method"] == "HEAD":
        return False
    closing = CLOSE in cycle.default_headers
    always = b"".join([b"%s: %s\r\n" % header for header in cycle.default_headers])
    if closing:
        cycle.keep_alive = False
    elif not cycle.keep_alive:
        always += b"connection: close\r\n"
    length = b"content-length: %d\r\n\r\n" % len(body)
    cycle.transport.write(b"".join((STATUS_LINE[status], always, headers, length, body)))
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True
