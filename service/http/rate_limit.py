"""Rate limits, by the generic cell rate algorithm.

After a pause a caller may send the whole number at once; then the allowance grows back evenly over the period.

Counts are in this process, or in Redis for several processes together. If Redis fails, each process counts for itself
until it is back, so more requests pass; the log says so.
"""

import asyncio
import hashlib
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from throttled.asyncio import MemoryStore, RateLimitResult, RedisStore, Throttled, per_duration

from service.compute.breaker import Breaker
from service.cpus import counts
from service.errors import RateLimited
from service.observe.telemetry import RedisFailure, Telemetry
from service.settings import RATE, Settings

CALLERS = 100_000  # in memory, some 300 bytes each; the least recently seen is dropped first
_CONNECTIONS = 32
_PREFIX = "semblance:rate"
_NOBODY = ""  # a caller that no request has
_PERIODS = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}


def counts_in_redis(settings: Settings) -> bool:
    """Whether all processes have one count: by the setting, or with several workers and a Redis."""
    if settings.rate_limit_store == "auto":
        return settings.redis_url is not None and counts(settings).workers > 1
    return settings.rate_limit_store == "redis"


class RateLimit:
    """A limit of requests in a period, for each caller."""

    def __init__(self, rate: str, telemetry: Telemetry, shared: "SharedCounts | None" = None) -> None:
        """Start with the whole allowance; `rate` is a number, a slash, and `second`, `minute` or `hour`."""
        self._rate = rate
        self._refused = telemetry.rate_limited
        self._own = _counting(rate, MemoryStore(options={"MAX_SIZE": CALLERS}))
        self.shared = shared

    async def take(self, caller: str) -> None:
        """Count one request of a caller.

        Raises:
            RateLimited: it exceeds the limit.
        """
        result = await self.shared.limit(caller) if self.shared is not None else None
        if result is None:
            result = await self._own.limit(caller)
        if result.limited:
            self._refused.inc()
            raise RateLimited(self._rate, result.state.limit, result.state.retry_after)


class SharedCounts:
    """Counts of all processes, in a Redis that may fail at any time."""

    def __init__(
        self,
        rate: str,
        telemetry: Telemetry,
        *,
        url: str,
        address: str,
        timeout_seconds: float,
    ) -> None:
        """Prepare the connection pool; arguments as for `RateLimit` and `RedisCache`."""
        pool = {"max_connections": _CONNECTIONS, "timeout": None, "retry": Retry(NoBackoff(), 0)}
        options = {"CONNECTION_POOL_CLASS": "redis.asyncio.BlockingConnectionPool", "CONNECTION_POOL_KWARGS": pool}
        self._store = RedisStore(server=url, options=options)
        self._callers = _counting(rate, self._store, _PREFIX)
        self._telemetry = telemetry
        self._timeout = timeout_seconds
        self._link = Breaker(
            "redis counts requests", "redis does not count requests; each process counts its own", address
        )

    async def limit(self, caller: str) -> RateLimitResult | None:
        """Count one request; None while Redis fails."""
        return await self._count(caller) if self._link.allows else None

    async def probe(self) -> None:
        """Check whether Redis counts."""
        await self._count(_NOBODY)

    @property
    def problems(self) -> list[str]:
        """What is wrong, for `/health/ready`."""
        if self._link.allows:
            return []
        return [f"redis does not count requests ({self._link.reason}): each process counts its own"]

    async def _count(self, caller: str) -> RateLimitResult | None:
        began = self._link.changes
        try:
            async with asyncio.timeout(self._timeout):
                # Hashed, so that Redis holds no addresses or names of keys.
                result = await self._callers.limit(hashlib.blake2b(caller.encode(), digest_size=16).hexdigest())
        except TimeoutError:
            self._failed("timeout", f"no answer within {self._timeout * 1000:.0f} ms", began)
        except Exception as error:  # of the client, the event loop or the network
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
    """The rate limit of the settings; None without one."""
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
