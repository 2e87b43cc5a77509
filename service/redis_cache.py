"""The shared tier of the cache: one MGET and one pipeline of SETs a request, in a Redis that may fail at any time.

A key is `semblance:2:<fingerprint, 16 hex digits>:<BLAKE2b-128 of the token ids>`. A value is one byte of format,
the vector in little-endian floats, and a CRC-32 over the key and all that stands before it: so garbage, a
value cut short, another model's size and an answer to another request's key are all told from a vector.

Whatever Redis does, a request is answered: a failure or a wait over the timeout counts as a miss, and for
`RETRY_SECONDS` nobody asks again (a circuit breaker), so that a hanging Redis delays a few requests, not all.
Redis' own words are never passed on to a caller.
"""

import asyncio
import hashlib
import logging
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import numpy as np
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from service.cache import K, Key, Space, Vector
from service.logs import fields
from service.telemetry import Telemetry

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
MAX_WRITES = 64  # pipelines under way; beyond, new embeddings are not written: the next miss tries again
_CONNECTIONS = 32
_FORMATS: Mapping[str, tuple[int, np.dtype[Any]]] = {
    "float32": (0x11, np.dtype("<f4")),
    "float16": (0x12, np.dtype("<f2")),
}
T = TypeVar("T")


class Breaker:
    """Whether something that failed may be tried again; says so in the log once for each change.

    Many attempts are under way at once, and what one of them saw may be older than the last change: an answer that
    came in just before a failure, but is read after it, says nothing of now. So each attempt carries `changes`, as it
    was when it began, and tells nothing once that has moved on.
    """

    def __init__(self, works: str, fails: str, address: str, clock: Callable[[], float]) -> None:
        self._works = works
        self._fails = fails
        self._address = address
        self._clock = clock
        self._retry_at = 0.0
        self.up: bool | None = None  # unknown until the first attempt
        self.changes = 0  # of `up`

    def allows(self) -> bool:
        """Whether to try now; after a failure one caller at a time may, every `RETRY_SECONDS`."""
        if self.up is not False:
            return True
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY_SECONDS
        return True

    def succeeded(self, began: int) -> None:
        """Note an answer to an attempt that began when `changes` was `began`."""
        if self.up is True or began != self.changes:
            return
        log.info(self._works, extra=fields(address=self._address))
        self.up = True
        self.changes += 1

    def failed(self, reason: str, began: int) -> None:
        """Note the failure of an attempt that began when `changes` was `began`."""
        if began != self.changes:
            return
        self._retry_at = self._clock() + RETRY_SECONDS
        if self.up is False:
            return
        log.warning(self._fails, extra=fields(address=self._address, reason=reason, retry_seconds=RETRY_SECONDS))
        self.up = False
        self.changes += 1


class RedisCache:
    """Vectors in Redis; a `service.cache.RemoteCache`."""

    def __init__(
        self,
        url: str,
        address: str,
        telemetry: Telemetry,
        *,
        timeout_seconds: float,
        ttl_seconds: int,
        dtype: Literal["float32", "float16"] = "float32",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the connection pool; nothing is sent yet.

        Args:
            url: where Redis is, credentials included.
            address: the same without them, for the log.
            telemetry: counts hits, misses and failures.
            timeout_seconds: how long a request may wait for Redis.
            ttl_seconds: how long Redis keeps a vector.
            dtype: how it is stored there.
            clock: seconds that never run backwards.
        """
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=None,  # no timers of their own for the pool, connecting and each read:
            socket_timeout=None,  # `_attempt` has one for all of them together
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),  # the breaker decides when to try again
        )
        self._redis = Redis.from_pool(pool)
        self._telemetry = telemetry
        self._hits, self._misses = telemetry.cache_counters("redis")
        self._timeout = timeout_seconds
        self._ttl = ttl_seconds
        self._marker, self._dtype = _FORMATS[dtype]
        self._link = Breaker("redis answers", "redis does not answer; vectors are computed instead", address, clock)
        # A Redis that is full answers, and only refuses what would fill it further.
        self._taker = Breaker("redis takes vectors", "redis refuses to keep vectors", address, clock)
        self._writes: set[asyncio.Task[None]] = set()

    @property
    def up(self) -> bool:
        """Whether Redis answered the last time it was asked."""
        return self._link.up is True

    async def ping(self) -> None:
        """Find out whether Redis answers, so that the log and `/health/ready` can say so."""
        await self._attempt(self._redis.ping, self._link)

    async def get_many(self, space: Space, keys: Sequence[K]) -> dict[K, Vector]:
        """The vectors that Redis has; none of them when it does not answer."""
        names = [name_of(space, key) for key in keys]
        values = await self._attempt(lambda: self._redis.mget(names), self._link)
        if values is None:
            return {}
        if not isinstance(values, list) or len(values) != len(keys):  # whatever answers there, it is no Redis
            self._telemetry.redis_failed("garbage")
            return {}
        found: dict[K, Vector] = {}
        for key, name, value in zip(keys, names, values, strict=True):
            if value is None:
                continue
            vector = self._decode(name, value, space.dim)
            if vector is None:
                self._telemetry.redis_failed("garbage")
            else:
                found[key] = vector
        self._hits.inc(len(found))
        self._misses.inc(len(keys) - len(found))
        return found

    def put_many(self, space: Space, vectors: Mapping[K, Vector]) -> None:
        """Write vectors in the background: no answer waits for it."""
        if not vectors or not self.up:
            return  # the next miss asks whether it is back
        if len(self._writes) >= MAX_WRITES:
            self._telemetry.redis_failed("dropped")
            return
        task = asyncio.get_running_loop().create_task(self._write(space, vectors))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def close(self) -> None:
        """Let the writes under way finish, within the timeout, and close the connections."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=self._timeout)
        await self._redis.aclose()

    async def _write(self, space: Space, vectors: Mapping[K, Vector]) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for key, vector in vectors.items():
            name = name_of(space, key)
            pipeline.set(name, self._encode(name, vector), ex=self._ttl)
        await self._attempt(pipeline.execute, self._taker)

    async def _attempt(self, command: Callable[[], Awaitable[T]], asked: Breaker) -> T | None:
        """The command's answer, or None when Redis is, or is thought to be, unable to give it.

        Args:
            command: what to send.
            asked: which breaker a refusal, as opposed to silence, belongs to.
        """
        if not self._link.allows() or (asked is not self._link and not asked.allows()):
            return None
        link_began, asked_began = self._link.changes, asked.changes
        answer = None
        try:
            async with asyncio.timeout(self._timeout):
                answer = await command()
        except TimeoutError:
            self._telemetry.redis_failed("timeout")
            self._link.failed(f"no answer within {self._timeout * 1000:.0f} ms", link_began)
            await self._disconnect()
        except ResponseError as error:
            self._telemetry.redis_failed("error")
            asked.failed(type(error).__name__, asked_began)
        except Exception as error:  # what the client, the event loop or the network raises: no request fails by it
            self._telemetry.redis_failed("error")
            self._link.failed(type(error).__name__, link_began)
            await self._disconnect()
        else:
            self._link.succeeded(link_began)
            if asked is not self._link:
                asked.succeeded(asked_began)
        self._telemetry.redis_up.set(self.up)
        return answer

    async def _disconnect(self) -> None:
        """Close the connections nobody uses: after a restart of Redis each of them would fail once."""
        with suppress(Exception):
            await self._redis.connection_pool.disconnect(inuse_connections=False)

    def _encode(self, name: bytes, vector: Vector) -> bytes:
        content = bytes((self._marker,)) + vector.astype(self._dtype).tobytes()
        return content + struct.pack("<I", zlib.crc32(content, zlib.crc32(name)))

    def _decode(self, name: bytes, value: object, dim: int) -> Vector | None:
        if not isinstance(value, bytes) or len(value) != 1 + dim * self._dtype.itemsize + 4:
            return None
        content, checksum = value[:-4], value[-4:]
        if content[0] != self._marker or struct.pack("<I", zlib.crc32(content, zlib.crc32(name))) != checksum:
            return None
        vector = np.frombuffer(content, self._dtype, offset=1).astype(np.float32)[None]
        return vector if np.isfinite(vector).all() else None


def name_of(space: Space, key: Key) -> bytes:
    """The name in Redis of what belongs to a sentence, or to a pair."""
    digest = hashlib.blake2b(space.graph.encode() + b"\0", digest_size=16)
    for ids in (key,) if isinstance(key[0], int) else key:
        digest.update(struct.pack(f"<{1 + len(ids)}I", len(ids), *ids))
    return f"semblance:2:{space.fingerprint[:16]}:{digest.hexdigest()}".encode()
