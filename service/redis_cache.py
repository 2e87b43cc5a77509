"""The shared tier of the cache: one MGET and one pipeline of SETs a request, in a Redis that may fail at any time.

A key is `semblance:1:<fingerprint, 16 hex digits>:<BLAKE2b-128 of the token ids>`. A value is one byte of format,
the embedding in little-endian floats, and a CRC-32 over the key and all that stands before it: so garbage, a
value cut short, another model's size and an answer to another request's key are all told from an embedding.

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
from typing import Any, Literal, TypeVar

import numpy as np
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from service.cache import Embedding, Ids, Space
from service.logs import fields
from service.telemetry import RedisFailure, Telemetry

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
    """Whether something that failed may be tried again; says so in the log once for each change."""

    def __init__(self, works: str, fails: str, address: str, clock: Callable[[], float]) -> None:
        self._works = works
        self._fails = fails
        self._address = address
        self._clock = clock
        self._retry_at = 0.0
        self.up: bool | None = None  # unknown until the first attempt

    def allows(self) -> bool:
        """Whether to try now; after a failure one caller at a time may, every `RETRY_SECONDS`."""
        if self.up is not False:
            return True
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY_SECONDS
        return True

    def succeeded(self) -> None:
        """Note an answer."""
        if self.up is not True:
            log.info(self._works, extra=fields(address=self._address))
        self.up = True

    def failed(self, reason: str) -> None:
        """Note a failure."""
        self._retry_at = self._clock() + RETRY_SECONDS
        if self.up is not False:
            log.warning(self._fails, extra=fields(address=self._address, reason=reason, retry_seconds=RETRY_SECONDS))
        self.up = False


class RedisCache:
    """Embeddings in Redis; a `service.cache.RemoteCache`."""

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
            ttl_seconds: how long Redis keeps an embedding.
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
        self._link = Breaker("redis answers", "redis does not answer; embeddings are computed instead", address, clock)
        # A Redis that is full answers, and only refuses what would fill it further.
        self._taker = Breaker("redis takes embeddings", "redis refuses to keep embeddings", address, clock)
        self._writes: set[asyncio.Task[None]] = set()

    @property
    def up(self) -> bool:
        """Whether Redis answered the last time it was asked."""
        return self._link.up is True

    async def ping(self) -> None:
        """Find out whether Redis answers, so that the log and `/health/ready` can say so."""
        await self._attempt(self._redis.ping, self._link)

    async def get_many(self, space: Space, ids: Sequence[Ids]) -> dict[Ids, Embedding]:
        """The embeddings that Redis has; none of them when it does not answer."""
        keys = [key_of(space, sentence) for sentence in ids]
        values = await self._attempt(lambda: self._redis.mget(keys), self._link)
        if values is None:
            return {}
        if not isinstance(values, list) or len(values) != len(keys):  # whatever answers there, it is no Redis
            self._telemetry.redis_failed("garbage")
            return {}
        found: dict[Ids, Embedding] = {}
        for sentence, key, value in zip(ids, keys, values, strict=True):
            if value is None:
                continue
            embedding = self._decode(key, value, space.dim)
            if embedding is None:
                self._telemetry.redis_failed("garbage")
            else:
                found[sentence] = embedding
        self._hits.inc(len(found))
        self._misses.inc(len(ids) - len(found))
        return found

    def put_many(self, space: Space, embeddings: Mapping[Ids, Embedding]) -> None:
        """Write embeddings in the background: no answer waits for it."""
        if not embeddings or not self.up:
            return  # the next miss asks whether it is back
        if len(self._writes) >= MAX_WRITES:
            self._telemetry.redis_failed("dropped")
            return
        task = asyncio.get_running_loop().create_task(self._write(space, embeddings))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def close(self) -> None:
        """Let the writes under way finish, within the timeout, and close the connections."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=self._timeout)
        await self._redis.aclose()

    async def _write(self, space: Space, embeddings: Mapping[Ids, Embedding]) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for sentence, embedding in embeddings.items():
            key = key_of(space, sentence)
            pipeline.set(key, self._encode(key, embedding), ex=self._ttl)
        await self._attempt(pipeline.execute, self._taker)

    async def _attempt(self, command: Callable[[], Awaitable[T]], asked: Breaker) -> T | None:
        """The command's answer, or None when Redis is, or is thought to be, unable to give it.

        Args:
            command: what to send.
            asked: which breaker a refusal, as opposed to silence, belongs to.
        """
        if not self._link.allows() or (asked is not self._link and not asked.allows()):
            return None
        try:
            async with asyncio.timeout(self._timeout):
                answer = await command()
        except TimeoutError:
            self._failed("timeout", self._link, f"no answer within {self._timeout * 1000:.0f} ms")
        except ResponseError as error:
            self._failed("error", asked, type(error).__name__)
        except Exception as error:  # what the client, the event loop or the network raises: no request fails by it
            self._failed("error", self._link, type(error).__name__)
        else:
            self._link.succeeded()
            asked.succeeded()
            self._telemetry.redis_up.set(1)
            return answer
        return None

    def _failed(self, kind: RedisFailure, breaker: Breaker, reason: str) -> None:
        self._telemetry.redis_failed(kind)
        breaker.failed(reason)
        self._telemetry.redis_up.set(self.up)

    def _encode(self, key: bytes, embedding: Embedding) -> bytes:
        content = bytes((self._marker,)) + embedding.astype(self._dtype).tobytes()
        return content + struct.pack("<I", zlib.crc32(content, zlib.crc32(key)))

    def _decode(self, key: bytes, value: object, dim: int) -> Embedding | None:
        if not isinstance(value, bytes) or len(value) != 1 + dim * self._dtype.itemsize + 4:
            return None
        content, checksum = value[:-4], value[-4:]
        if content[0] != self._marker or struct.pack("<I", zlib.crc32(content, zlib.crc32(key))) != checksum:
            return None
        embedding = np.frombuffer(content, self._dtype, offset=1).astype(np.float32)[None]
        return embedding if np.isfinite(embedding).all() else None


def key_of(space: Space, ids: Ids) -> bytes:
    """The Redis key of a sentence's embedding."""
    digest = hashlib.blake2b(struct.pack(f"<{len(ids)}I", *ids), digest_size=16).hexdigest()
    return f"semblance:1:{space.fingerprint[:16]}:{digest}".encode()
