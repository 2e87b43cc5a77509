"""How often one caller may ask: the generic cell rate algorithm.

A caller who was silent may send the whole number at once; then the allowance grows back evenly over the period.

Counts are kept in this process; or in Redis, where several processes shall have one count. Redis failing never fails a
request: until it is back each process counts for itself, which lets more through, and the log says so.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from throttled.asyncio import MemoryStore, RateLimitResult, RedisStore, Throttled, per_duration

from service.cpus import counts
from service.errors import RateLimited
from service.redis_cache import Breaker
from service.settings import RATE, Settings
from service.telemetry import RedisFailure, Telemetry

CALLERS = 100_000  # remembered; the one unseen for longest is forgotten first, some 300 bytes each
_CONNECTIONS = 32
_PREFIX = "semblance:rate"
_PERIODS = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}


def counts_in_redis(settings: Settings) -> bool:
    """Whether all processes have one count: where that was asked for, or where there are several, and a Redis."""
    if settings.rate_limit_store == "auto":
        return settings.redis_url is not None and counts(settings).workers > 1
    return settings.rate_limit_store == "redis"


class RateLimit:
    """So many requests a period, for each caller."""

    def __init__(self, rate: str, telemetry: Telemetry, shared: "SharedCounts | None" = None) -> None:
        """Start with everybody's whole allowance.

        Args:
            rate: a number, a slash, and `second`, `minute` or `hour`.
            telemetry: counts what is refused.
            shared: the counts of all processes, if they have one.
        """
        self._rate = rate
        self._refused = telemetry.rate_limited
        self._own = _counting(rate, MemoryStore(options={"MAX_SIZE": CALLERS}))
        self._shared = shared

    async def take(self, caller: str) -> None:
        """Count one request of a caller.

        Raises:
            RateLimited: it is one too many.
        """
        result = await self._shared.limit(caller) if self._shared is not None else None
        if result is None:
            result = await self._own.limit(caller)
        if result.limited:
            self._refused.inc()
            raise RateLimited(self._rate, result.state.limit, result.state.retry_after)

    async def close(self) -> None:
        """Close what is shared."""
        if self._shared is not None:
            await self._shared.close()


class SharedCounts:
    """One count for all processes, in a Redis that may fail at any time."""

    def __init__(
        self,
        rate: str,
        telemetry: Telemetry,
        *,
        url: str,
        address: str,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the connection pool; nothing is sent yet.

        Args:
            rate: as of `RateLimit`.
            telemetry: counts failures.
            url: where Redis is, credentials included.
            address: the same without them, for the log.
            timeout_seconds: how long a request may wait for Redis.
            clock: seconds that never run backwards.
        """
        pool = {"max_connections": _CONNECTIONS, "timeout": None, "retry": Retry(NoBackoff(), 0)}
        options = {"CONNECTION_POOL_CLASS": "redis.asyncio.BlockingConnectionPool", "CONNECTION_POOL_KWARGS": pool}
        self._store = RedisStore(server=url, options=options)
        self._callers = _counting(rate, self._store, _PREFIX)
        self._telemetry = telemetry
        self._timeout = timeout_seconds
        self._link = Breaker(
            "redis counts requests", "redis does not count requests; each process counts its own", address, clock
        )

    async def limit(self, caller: str) -> RateLimitResult | None:
        """Count one request; None while Redis cannot."""
        if not self._link.allows():
            return None
        began = self._link.changes
        try:
            async with asyncio.timeout(self._timeout):
                # Who asks is nobody's business who may look into Redis.
                result = await self._callers.limit(hashlib.blake2b(caller.encode(), digest_size=16).hexdigest())
        except TimeoutError:
            self._failed("timeout", f"no answer within {self._timeout * 1000:.0f} ms", began)
        except Exception as error:  # what the client, the event loop or the network raises: no request fails by it
            self._failed("error", type(error).__name__, began)
        else:
            self._link.succeeded(began)
            return result
        return None

    async def close(self) -> None:
        """Close the connections."""
        client = cast(Redis, self._store._backend.get_client())  # the library has no way to close a store
        await client.aclose(close_connection_pool=True)

    def _failed(self, kind: RedisFailure, reason: str, began: int) -> None:
        self._telemetry.redis_failed(kind)
        self._link.failed(reason, began)


def open_rate_limit(settings: Settings, telemetry: Telemetry) -> RateLimit | None:
    """What the settings ask for; None where nobody is limited."""
    if settings.rate_limit is None:
        return None
    shared = None
    if settings.redis_url is not None and counts_in_redis(settings):
        shared = SharedCounts(
            settings.rate_limit,
            telemetry,
            url=settings.redis_url.get_secret_value(),
            address=settings.redis_address or "",
            timeout_seconds=settings.redis_timeout_ms / 1000,
        )
    return RateLimit(settings.rate_limit, telemetry, shared)


def _counting(rate: str, store: MemoryStore | RedisStore, prefix: str | None = None) -> Throttled:
    parts = RATE.fullmatch(rate)
    assert parts is not None, "the settings let no other rate pass"
    quota = per_duration(_PERIODS[parts[2]], int(parts[1]))
    return Throttled(using="gcra", quota=quota, store=store, key_prefix=prefix)
