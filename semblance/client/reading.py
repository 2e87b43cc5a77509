"""The body of an answer is read within its bounds of bytes and seconds, whatever a server sends."""

import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from semblance.errors import TimedOut, UnexpectedAnswer

MAX_ANSWER_BYTES = 2**28
_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")  # events of httpcore


class AnswerBody:
    """The parts of an answer's body, and the time until it must be whole."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds = url, seconds
        self._began = time.monotonic()
        self._body = bytearray()
        self.count = 0

    def add(self, part: bytes) -> None:
        """Take one more part.

        Raises:
            UnexpectedAnswer: the body is longer than any of this service.
            TimedOut: as `left`.
        """
        self._body += part
        if len(self._body) > MAX_ANSWER_BYTES:
            raise UnexpectedAnswer(f"{self._url} answers with more than {MAX_ANSWER_BYTES // 2**20} MiB")
        self.left()

    def left(self) -> float:
        """Seconds until it must be whole.

        Raises:
            TimedOut: there are none, however steadily it comes.
        """
        left = self._seconds - (time.monotonic() - self._began)
        if left <= 0:
            raise self.late()
        return left

    def late(self) -> TimedOut:
        """The error of an answer that takes too long."""
        return TimedOut(f"no whole answer from {self._url} within {self._seconds:g} s")

    def whole(self) -> bytes:
        """The body."""
        return bytes(self._body)


READ = ContextVar[Any]("READ")  # what is read in this thread: `left` says for how many seconds, `count` of bytes


def bound_reads(event: str, info: Mapping[str, Any]) -> None:
    """A `trace` of httpx: reads of each new connection end when the answer must be whole.

    httpx bounds each read alone. A head that comes byte by byte, or behind heads of 1xx without end, would be read for
    ever, for the client sees no part of it.
    """
    if not event.endswith(_CONNECTED):
        return
    stream = info["return_value"]
    read = stream.read

    def read_in_time(most: int, timeout: float | None = None) -> bytes:
        answer = READ.get()
        left = answer.left()
        part: bytes = read(most, left if timeout is None else min(left, timeout))
        answer.count += len(part)
        return part

    stream.read = read_in_time
