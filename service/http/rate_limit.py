"""Rate limits, by the generic cell rate algorithm.

After a pause a caller may send the whole number at once; then the allowance grows back evenly over the period.

Counts are in this process, or in Redis for several processes together. If Redis fails, each process counts for itself
until it is back, so more requests pass; the log says so.
"""

import hashlib
from datetime import timedelta
from typing import Any

from throttled.asyncio import MemoryStore, RateLimitResult, RedisStore, per_duration
from throttled.asyncio.rate_limiter.gcra import GCRARateLimiter, RedisLimitAtomicAction
from throttled.store import ConnectionFactory

from service.engine.redis_client import RedisClient
from service.errors import RateLimited
from service.observe.telemetry import Telemetry
from service.settings import RATE, Settings

CALLERS = 100_000  # in memory, some 300 bytes each; the least recently seen is dropped first
_PREFIX = "semblance:rate"
_CLOCK_SECONDS = 1.0  # by which a Redis' clock may go back, when another one takes over
_NOBODY = ""  # a caller that no request has
_PERIODS = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}


class RateLimit:
    """A limit of requests in a period, for each caller."""

    def __init__(self, settings: Settings, telemetry: Telemetry) -> None:
        """Start with the whole allowance of the settings, counted in their Redis if they name one."""
        self._rate = settings.rate_limit or ""
        self._refused = telemetry.rate_limited
        self._own = _counting(settings, MemoryStore(options={"MAX_SIZE": CALLERS}))
        self.shared = SharedCounts(settings, telemetry) if settings.redis_url is not None else None

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


class StoreWithClient(ConnectionFactory):
    """Gives a store of the library the client in its options, where it would make its own."""

    def connect(self, url: str | None = None) -> Any:
        """The client that the options gave."""
        return self.options["CLIENT"]()


class CountAnyway(RedisLimitAtomicAction):
    """Counts in Redis; what is no count there, whoever wrote it, is as none."""

    SCRIPTS = (
        'if not tonumber(redis.pcall("GET", KEYS[1]) or 0) then redis.call("SET", KEYS[1], 0) end'
        + RedisLimitAtomicAction.SCRIPTS
    )


class SharedCounts:
    """Counts of all processes, in a Redis that may fail at any time."""

    def __init__(self, settings: Settings, telemetry: Telemetry) -> None:
        """Prepare the client of the Redis that the settings name."""
        works, fails = "redis counts requests", "redis does not count requests; each process counts its own"
        self._client = RedisClient(settings, telemetry, works, fails)
        factory = f"{__name__}.{StoreWithClient.__name__}"
        store = RedisStore(options={"CONNECTION_FACTORY_CLASS": factory, "CLIENT": lambda: self._client.redis})
        self._callers = _counting(settings, store, _PREFIX)
        self._rate = settings.rate_limit
        self._longest = _rate_of(settings)[1].total_seconds() + _CLOCK_SECONDS
        secret = settings.redis_secret
        self._key = b"" if secret is None else hashlib.blake2b(secret.get_secret_value().encode()).digest()

    async def limit(self, caller: str, *, ignore_breakers: bool = False) -> RateLimitResult | None:
        """Count one request.

        Args:
            caller: whose it is.
            ignore_breakers: ask Redis even while it is known to fail.

        Returns:
            What is left of the caller's allowance; None while Redis fails, or if it holds something else than a count.
        """
        # Hashed, so that Redis holds no addresses or names of keys; with a secret nobody else can name a caller. With
        # the limit, by which counts differ: services of other limits, and this one before a change, count apart.
        name = hashlib.blake2b(f"{self._rate} {caller}".encode(), digest_size=16, key=self._key).hexdigest()
        result = await self._client.attempt(lambda: self._callers.limit(name), ignore_breakers=ignore_breakers)
        if (
            result is not None and not 0 <= result.state.reset_after <= self._longest
        ):  # an allowance is back in a period
            self._client.garbage()
            return None
        return result

    async def probe(self) -> None:
        """Check whether Redis counts."""
        await self.limit(_NOBODY, ignore_breakers=True)

    @property
    def problems(self) -> list[str]:
        """What is wrong, for `/health/ready`."""
        link = self._client.link
        if not link.allows:
            return [f"redis does not count requests ({link.reason}): each process counts its own"]
        return ["redis holds counts that are none: each process counts its own"] if self._client.has_garbage else []

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._client.aclose()


def _counting(settings: Settings, store: MemoryStore | RedisStore, prefix: str | None = None) -> GCRARateLimiter:
    count, period = _rate_of(settings)
    return GCRARateLimiter(per_duration(period, count), store, [CountAnyway], prefix)


def _rate_of(settings: Settings) -> tuple[int, timedelta]:
    """How many requests in which period."""
    parts = RATE.fullmatch(settings.rate_limit or "")
    assert parts is not None, "the settings let no other rate pass"
    return int(parts[1]), _PERIODS[parts[2]]
