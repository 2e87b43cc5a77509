"""A client of redis-py, and a circuit breaker: after a failure requests skip Redis until a background probe succeeds.

The client does not retry: the breakers decide when Redis is asked again, and the caller has one timer for the wait for
a connection, connecting and reading together.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import DefaultParser
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ClusterCrossSlotError,
    ClusterDownError,
    ConnectionError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
)

from service.observe.logs import fields

log = logging.getLogger(__name__)

PROBE_SECONDS = 2.0  # between one probe and the next


class Breaker:
    """Whether a backend works; logs each change once.

    Attempts run concurrently, and one may end with news older than the last change. Each attempt therefore passes the
    value of `changes` at its begin, and is ignored if `changes` has grown since.
    """

    def __init__(self, works: str, fails: str, address: str) -> None:
        """Start in the unknown state; `works` and `fails` are log messages, `address` is without credentials."""
        self._works = works
        self._fails = fails
        self._address = address
        self.up: bool | None = None  # unknown until the first attempt
        self.reason = ""  # of the failure; without secrets, /health/ready shows it
        self.changes = 0  # of `up`

    @property
    def allows(self) -> bool:
        """Whether requests use the backend."""
        return self.up is not False

    def succeeded(self, began: int) -> None:
        """An attempt that began when `changes` was `began` was answered."""
        if self.up is True or began != self.changes:
            return
        log.info(self._works, extra=fields(address=self._address))
        self.up = True
        self.reason = ""
        self.changes += 1

    def failed(self, reason: str, began: int) -> None:
        """An attempt that began when `changes` was `began` failed."""
        if began != self.changes:
            return
        self.reason = reason
        if self.up is False:
            return
        log.warning(self._fails, extra=fields(address=self._address, reason=reason, retry_seconds=PROBE_SECONDS))
        self.up = False
        self.changes += 1


_CONNECTIONS = 32
# The head of an answer of 100,000 elements or more; the largest that is asked for has a thousand. hiredis would make a
# list of what is announced: 16 GB, which took the event loop 19 s.
_TOO_MANY = re.compile(rb"\n[*%~>][0-9]{6}")
_TAIL_BYTES = 8  # by which such a head may begin in what came before
_CLUSTERED = "it is in cluster mode, and one server is expected"
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (OutOfMemoryError, "it is full"),
    (ReadOnlyError, "it is a read-only replica"),
    (NoPermissionError, "its user may not"),
    (ssl.SSLCertVerificationError, "its certificate is not trusted"),
    (ClusterCrossSlotError, _CLUSTERED),
    (ClusterDownError, _CLUSTERED),
    (MovedError, _CLUSTERED),
)
T = TypeVar("T")


class _Parser(DefaultParser):  # type: ignore[misc,valid-type]  # one of several classes, by what is installed
    """Reads answers, and refuses those that announce very many elements."""

    _tail = b"\n"

    async def read_from_socket(self) -> bool:
        """As hiredis' parser of redis-py.

        Raises:
            ConnectionError: the server has closed, or announces too many elements.
        """
        received: bytes = await self._stream.read(self._read_size)
        if not received:
            raise ConnectionError("closed")
        around = self._tail + received
        if _TOO_MANY.search(around):
            raise ConnectionError("an answer of very many elements")
        self._tail = around[-_TAIL_BYTES:]
        self._reader.feed(received)
        return True


class RedisClient:
    """Sends commands to one server."""

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: with credentials; forms are in `service/parsing.py`.
            timeout_seconds: of a request.
        """
        self._timeout = timeout_seconds
        self._free = asyncio.Semaphore(_CONNECTIONS)
        pool = ConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=None,
            socket_connect_timeout=None,
            parser_class=_Parser,
        )
        self.redis = Redis.from_pool(pool)

    async def ask(self, command: Callable[[], Awaitable[T]]) -> T:
        """The answer to a command of `redis`; a wait for a free connection counts.

        Raises:
            TimeoutError: no answer in time.
            Exception: of redis-py, the event loop or the network.
        """
        async with asyncio.timeout(self._timeout), self._free:
            return await command()

    async def disconnect(self) -> None:
        """Close idle connections: after a restart of Redis each of them would fail once."""
        with suppress(Exception):
            async with asyncio.timeout(self._timeout):
                await self.redis.connection_pool.disconnect(inuse_connections=False)

    async def aclose(self) -> None:
        """Close all connections to Redis."""
        await self.redis.aclose()

    def reason(self, error: Exception) -> str:
        """The reason for an error, without Redis' own message, which may contain anything."""
        for cause in _causes(error):
            for kind, words in _REASONS:
                if isinstance(cause, kind):
                    return words
        return type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
