"""A client of redis-py, for a Redis that may fail at any time.

It does not retry: breakers decide when Redis is asked again (`service/engine/breaker.py`). One timer is for connecting
and reading together; so a new connection sends nothing that it can do without.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import DefaultParser
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, ResponseError
from throttled.exceptions import StoreUnavailableError

from service.engine.breaker import Breaker
from service.observe.logs import fields
from service.observe.telemetry import Telemetry
from service.settings import Settings

log = logging.getLogger(__name__)

GARBAGE_SECONDS = 60.0  # for which garbage is told of
_CONNECTIONS = 32
# Elements that the heads of lists in one piece of an answer may announce together; the longest list that is asked for
# has a thousand. hiredis would make a list of what is announced: 16 GB, which took the event loop 19 s.
_MAX_ELEMENTS = 100_000
_HEAD = re.compile(rb"[*%~>|]([0-9]{1,20})\r")
_TAIL_BYTES = 22  # by which such a head may begin in what came before
_WORD = re.compile(r"[A-Z]{3,20}").fullmatch  # such as MISCONF, before Redis' message
T = TypeVar("T")


class _Parser(DefaultParser):  # type: ignore[misc,valid-type]  # one of several classes, by what is installed
    """Reads answers, and refuses those that announce very many elements."""

    _tail = b""

    def on_connect(self, connection: Any) -> None:
        """Begin with a connection, which may be another one."""
        self._tail = b""
        super().on_connect(connection)

    async def read_from_socket(self) -> bool:
        """As hiredis' parser of redis-py.

        Raises:
            ConnectionError: the server has closed, or announces too many elements.
        """
        received: bytes = await self._stream.read(self._read_size)
        if not received:
            raise ConnectionError("closed")
        around = self._tail + received
        if sum(map(int, _HEAD.findall(around))) >= _MAX_ELEMENTS:
            raise ConnectionError("an answer of very many elements")
        self._tail = around[-_TAIL_BYTES:]
        self._reader.feed(received)
        return True


class RedisClient:
    """Sends commands to the server that the settings name, unless a breaker is open."""

    def __init__(self, settings: Settings, telemetry: Telemetry, works: str, fails: str) -> None:
        """Prepare; nothing is sent yet.

        Args:
            settings: which name a Redis.
            telemetry: counts failures.
            works: what the log says when `link` closes.
            fails: what it says when `link` opens.
        """
        assert settings.redis_url is not None, "who has a client has settings that name a server"
        self.link = Breaker(works, fails, settings.redis_address or "")  # whether the server answers
        self._telemetry = telemetry
        self._garbage_at: float | None = None
        self._timeout = settings.redis_timeout_ms / 1000
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        pool = ConnectionPool.from_url(
            settings.redis_url.get_secret_value(),
            max_connections=_CONNECTIONS,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=None,
            socket_connect_timeout=None,
            parser_class=_Parser,
            protocol=2,  # 3 begins with HELLO
            driver_info=None,  # no CLIENT SETINFO
        )
        self.redis = Redis.from_pool(pool)

    async def attempt(
        self, command: Callable[[], Awaitable[T]], asked: Breaker | None = None, *, ignore_breakers: bool = False
    ) -> T | None:
        """The answer to a command of `redis`, or None if Redis fails or a breaker is open.

        Args:
            command: sends it.
            asked: the breaker that an error answer opens, if it is another one than `link`, which a timeout or a lost
                connection opens.
            ignore_breakers: ask even while one says that it fails.
        """
        asked = asked or self.link
        if not ignore_breakers and not (self.link.allows and asked.allows):
            return None
        link_began, asked_began = self.link.changes, asked.changes
        try:
            async with self._slots:  # the wait is no fault of Redis, and ends with the first that is
                if not ignore_breakers and not (self.link.allows and asked.allows):
                    return None
                async with asyncio.timeout(self._timeout):
                    answer = await command()
        except TimeoutError:
            self._telemetry.redis_failed("timeout")
            self.link.failed(f"no answer within {self._timeout * 1000:.0f} ms", link_began)
        except ResponseError as error:
            self._telemetry.redis_failed("error")
            asked.failed(reason_of(error), asked_began)
            return None
        except Exception as error:  # of the client, the event loop or the network
            self._telemetry.redis_failed("error")
            self.link.failed(reason_of(error), link_began)
        else:
            self.link.succeeded(link_began)
            if asked is not self.link:
                asked.succeeded(asked_began)
            return answer
        await self._disconnect()
        return None

    def garbage(self) -> None:
        """Count an answer that is not what this service wrote; the log has the first one in a while."""
        self._telemetry.redis_failed("garbage")
        if not self.has_garbage:
            log.warning("redis holds what this service did not write", extra=fields(address=self.link.address))
        self._garbage_at = time.monotonic()

    @property
    def has_garbage(self) -> bool:
        """Whether there was such an answer lately."""
        return self._garbage_at is not None and time.monotonic() - self._garbage_at < GARBAGE_SECONDS

    async def _disconnect(self) -> None:
        """Close idle connections: after a restart of Redis each of them would fail once."""
        with suppress(Exception):
            async with asyncio.timeout(self._timeout):
                await self.redis.connection_pool.disconnect(inuse_connections=False)

    async def aclose(self) -> None:
        """Close all connections to Redis."""
        await self.redis.aclose()


def reason_of(error: BaseException) -> str:
    """The kind of an error, with Redis' word for it; not its whole message, which may contain anything."""
    # These two say nothing themselves: that there is no connection, and that what counts has no answer.
    says_nothing = ConnectionError, StoreUnavailableError
    while type(error) in says_nothing and (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    word = str(error).partition(" ")[0] if isinstance(error, ResponseError) else ""
    return f"{type(error).__name__} {word}" if _WORD(word) else type(error).__name__
