"""A client of redis-py for one server, for a cluster, or for the master that sentinels name.

No client here retries: the circuit breakers decide when Redis is asked again, and the caller has one timer for the
wait for a connection, connecting and reading together.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import ConnectionPool, Redis, Sentinel
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import DefaultParser
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError
from redis.backoff import NoBackoff
from redis.exceptions import (
    ClusterCrossSlotError,
    ClusterDownError,
    ConnectionError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
)

from service import redis_url

_CONNECTIONS = 32  # of one client to one server
# A cluster's nodes and slots are asked for at the first probe, and again after a failure. The answer is long, so that
# it may take longer than a request.
_DISCOVERY_SECONDS = 2.0
# The head of an answer of 100,000 elements or more; the largest that is asked for has a thousand. hiredis would make a
# list of what is announced: 16 GB, which took the event loop 19 s.
_TOO_MANY = re.compile(rb"\n[*%~>][0-9]{6}")
_TAIL_BYTES = 8  # by which such a head may begin in what came before
_NOT_CLUSTERED = "it is in cluster mode: its address is redis+cluster://..."
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (OutOfMemoryError, "it is full"),
    (ReadOnlyError, "it is a read-only replica"),
    (NoPermissionError, "its user may not"),
    (MasterNotFoundError, "no sentinel knows a master of this name that is up"),
    (ssl.SSLCertVerificationError, "its certificate is not trusted"),
)
_OF_A_NODE: tuple[type[Exception], ...] = (ClusterCrossSlotError, ClusterDownError, MovedError)
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
    """Sends commands to wherever an address leads."""

    def __init__(self, url: str, *, timeout_seconds: float, authority: Path | None = None) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: with credentials; forms are in `service/redis_url.py`.
            timeout_seconds: of a request. Each of several sentinels gets a part of it, so that one that hangs does not
                keep the others from being asked.
            authority: certificate authorities to trust over TLS, instead of the system's.

        Raises:
            ValueError: the address has another form.
        """
        parts = redis_url.read(url)
        self._timeout = timeout_seconds
        self._free = asyncio.Semaphore(_CONNECTIONS)
        self.clustered = parts.kind == "cluster"
        retry = Retry(NoBackoff(), 0)
        limits: dict[str, Any] = {"socket_timeout": None, "socket_connect_timeout": None}
        parser: dict[str, Any] = {"parser_class": _Parser}
        trust: dict[str, Any] = {} if authority is None else {"ssl_ca_certs": str(authority)}
        several: dict[str, Any] = parts.options | trust | ({"ssl": True} if parts.tls else {})
        self._sentinel: Sentinel | None = None
        self.redis: Redis | RedisCluster
        if parts.kind == "cluster":
            startup = [ClusterNode(host, port) for host, port in parts.nodes]
            self.redis = RedisCluster(
                startup_nodes=startup, max_connections=_CONNECTIONS, retry=retry, **several, **limits
            )
            nodes: list[Any] = [self.redis, *self.redis.startup_nodes]
            for node in nodes:  # it takes no parser for its nodes
                node.connection_kwargs.update(parser)
        elif parts.kind == "sentinel":
            each = timeout_seconds / (len(parts.nodes) + 1)
            asked = {name: value for name, value in several.items() if name.startswith("ssl")} | parts.of_sentinels
            asked |= {"socket_timeout": each, "socket_connect_timeout": each, "retry": retry}
            self._sentinel = Sentinel(parts.nodes, sentinel_kwargs=asked)  # type: ignore[no-untyped-call]
            for sentinel in self._sentinel.sentinels:
                sentinel.connection_pool.connection_kwargs.update(parser)
            self.redis = self._sentinel.master_for(
                parts.service, max_connections=_CONNECTIONS, retry=retry, **several, **limits, **parser
            )
        else:
            options = {"max_connections": _CONNECTIONS, "retry": retry, **trust, **limits, **parser}
            self.redis = Redis.from_pool(ConnectionPool.from_url(url, **options))

    async def ask(self, command: Callable[[], Awaitable[T]]) -> T:
        """The answer to a command of `redis`; a wait for a free connection counts.

        Raises:
            TimeoutError: no answer in time.
            Exception: of redis-py, the event loop or the network.
        """
        async with asyncio.timeout(self._timeout), self._free:
            return await command()

    async def discover(self) -> None:
        """Learn a cluster's nodes, where they are not known.

        Raises:
            Exception: as `ask`.
        """
        if isinstance(self.redis, RedisCluster):
            async with asyncio.timeout(max(self._timeout, _DISCOVERY_SECONDS)):
                await self.redis.initialize()

    async def mget(self, names: Sequence[bytes]) -> Any:
        """What lies under each name; in a cluster one exchange with each node."""
        if isinstance(self.redis, RedisCluster):
            return await self.redis.mget_nonatomic(names)
        return await self.redis.mget(names)

    async def check_nodes(self) -> None:
        """Ask each node of a cluster that has slots whether it serves, since a request may need any; else nothing.

        Raises:
            ClusterDownError: one of them answers no requests, because it misses others.
            Exception: as `ask`; one does not answer.
        """
        if isinstance(self.redis, RedisCluster):
            told: Any = await self.redis.cluster_info(target_nodes=RedisCluster.PRIMARIES)
            states = [told] if "cluster_state" in told else told.values()  # of one node, or by node
            if any(state["cluster_state"] != "ok" for state in states):
                raise ClusterDownError("a node does not serve")

    async def disconnect(self) -> None:
        """Close idle connections: after a restart of Redis each of them would fail once. A cluster is learnt anew."""
        with suppress(Exception):
            async with asyncio.timeout(self._timeout):
                if isinstance(self.redis, RedisCluster):
                    await self.redis.aclose()
                else:
                    await self.redis.connection_pool.disconnect(inuse_connections=False)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.redis.aclose()
        if self._sentinel is not None:
            await self._sentinel.aclose()

    def reason(self, error: Exception) -> str:
        """The reason for an error, without Redis' own message, which may contain anything."""
        for cause in _causes(error):
            for kind, words in _REASONS:
                if isinstance(cause, kind):
                    return words
        if isinstance(error, RedisClusterException):
            within = error.__cause__
            if isinstance(within, RedisClusterException) and isinstance(within.__context__, ResponseError):
                return "it is not in cluster mode"
            return type(within).__name__ if within is not None else "slots of the cluster have no node"
        if isinstance(error, _OF_A_NODE):
            return "slots of the cluster have no node" if self.clustered else _NOT_CLUSTERED
        return type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
