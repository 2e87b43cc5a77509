"""A client of redis-py.

It does not retry: breakers decide when Redis is asked again (`service/compute/breaker.py`), and the caller has one
timer for the wait for a connection, connecting and reading together.
"""

import asyncio
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
