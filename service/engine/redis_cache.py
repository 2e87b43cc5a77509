"""The shared tier of the cache: one MGET and one pipeline of SETs a request, in a Redis that may fail at any time.

What a key and a value are made of is in `vector_codec.py`.

A request is answered whatever Redis does: a failure, or no answer within the timeout, is a miss. Then no request uses
Redis until a probe succeeds; reading and writing have a circuit breaker each. Redis' error messages are never passed
on to a client.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal

from redis.exceptions import ResponseError

from service.engine.breaker import Breaker
from service.engine.redis_client import RedisClient, reason_of
from service.engine.vector_codec import K, Vector, VectorCodec, VectorSpace, name_of
from service.observe.telemetry import Telemetry
from service.settings import Settings

MAX_WRITES = 64  # pipelines under way; beyond, new vectors are not written
_TTL_SECONDS = 7 * 24 * 3600  # a vector that nobody asks for in a week is not worth its room
# Keys of a probe, in two hash slots: a server in cluster mode does not read them together, as the keys of a request.
_PROBES = (b"semblance:probe:0", b"semblance:probe:1")
_PROBE_TTL_SECONDS = 60  # should it not be deleted


class RedisCache:
    """Vectors in Redis; a `RemoteCache` (`vector_codec.py`)."""

    name = "redis"

    def __init__(self, settings: Settings, telemetry: Telemetry) -> None:
        """Prepare the client; nothing is sent yet."""
        works, fails = "redis answers", "redis does not answer; vectors are computed instead"
        self._client = RedisClient(settings, telemetry, works, fails)
        self._link = self._client.link
        # A full Redis, or a read-only replica, can be read and refuses writes.
        self._write_breaker = Breaker(
            "redis takes vectors", "redis refuses to keep vectors", settings.redis_address or ""
        )
        self._telemetry = telemetry
        self._hits, self._misses = telemetry.cache_counters("redis")
        self._timeout = settings.redis_timeout_ms / 1000
        secret = settings.redis_secret
        self._codec = VectorCodec(None if secret is None else secret.get_secret_value())
        self._writes: set[asyncio.Task[None]] = set()
        telemetry.follow(telemetry.redis_up, lambda: self.up)
        telemetry.follow(telemetry.redis_writable, lambda: self._link.allows and self._write_breaker.up is True)

    @property
    def up(self) -> bool:
        """Whether the last attempt to read succeeded."""
        return self._link.up is True

    @property
    def problems(self) -> list[str]:
        """What is wrong with reading or writing, for `/health/ready`."""
        if not self.up:
            return [f"redis cannot be read ({self._link.reason or 'not asked yet'}): vectors are computed instead"]
        if not self._write_breaker.allows:
            return [
                f"redis keeps nothing new ({self._write_breaker.reason}): what it does not have is computed each time"
            ]
        if self._client.has_garbage:
            return ["redis holds values that are no vectors of this service: these are computed anew"]
        return []

    async def probe(self) -> None:
        """Write, read and delete a small key, and set both breakers by the outcome."""
        began = self._write_breaker.changes
        refusal = await self._client.attempt(self._write_and_read, ignore_breakers=True)
        if refusal is None:  # no answer: nothing is known of writing
            return
        if isinstance(refusal, Exception):
            self._telemetry.redis_failed("error")
            self._write_breaker.failed(reason_of(refusal), began)
        else:
            self._write_breaker.succeeded(began)

    async def _write_and_read(self) -> Exception | Literal[True]:
        """The error of the write, or True; raises that of the read."""
        pipeline = self._client.redis.pipeline(transaction=False)
        pipeline.set(_PROBES[0], b"1", ex=_PROBE_TTL_SECONDS)
        pipeline.mget(_PROBES)
        pipeline.delete(_PROBES[0])
        wrote, read, _ = await pipeline.execute(raise_on_error=False)
        if isinstance(read, Exception):
            raise read
        if not isinstance(read, list) or len(read) != len(_PROBES):
            raise ResponseError("no Redis")
        return wrote if isinstance(wrote, Exception) else True

    async def get_many(self, space: VectorSpace, keys: Sequence[K]) -> dict[K, Vector]:
        """The vectors that Redis has; none if it does not answer."""
        names = [name_of(space, key) for key in keys]
        values = await self._client.attempt(lambda: self._client.redis.mget(names))
        if values is None:
            return {}
        if not isinstance(values, list) or len(values) != len(keys):  # not a Redis
            self._client.garbage()
            return {}
        found: dict[K, Vector] = {}
        for key, name, value in zip(keys, names, values, strict=True):
            if value is None:
                continue
            vector = self._codec.decode(name, value, space.dim)
            if vector is None:
                self._client.garbage()
            else:
                found[key] = vector
        self._hits.inc(len(found))
        self._misses.inc(len(keys) - len(found))
        return found

    def put_many(self, space: VectorSpace, vectors: Mapping[K, Vector]) -> None:
        """Write vectors in the background."""
        if not vectors or not self.up or not self._write_breaker.allows:
            return
        if len(self._writes) >= MAX_WRITES:
            self._telemetry.redis_failed("dropped")
            return
        task = asyncio.get_running_loop().create_task(self._write(space, vectors))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def close(self) -> None:
        """Wait for the writes under way, at most for the timeout, and close the connections."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=self._timeout)
        await self._client.aclose()

    async def _write(self, space: VectorSpace, vectors: Mapping[K, Vector]) -> None:
        pipeline = self._client.redis.pipeline(transaction=False)
        for key, vector in vectors.items():
            name = name_of(space, key)
            pipeline.set(name, self._codec.encode(name, vector), ex=_TTL_SECONDS)
        await self._client.attempt(pipeline.execute, self._write_breaker)
