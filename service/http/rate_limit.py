"""Rate limits, by the generic cell rate algorithm.

After a pause a caller may send the whole number at once; then the allowance grows back evenly over the period.

Counts are in this process, or in Redis for several processes together. If Redis fails, each process counts for itself
until it is back, so more requests pass; the log says so.
"""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from throttled.asyncio import MemoryStore, RateLimitResult, RedisStore, Throttled, per_duration
from throttled.store import ConnectionFactory

from service.api.operation import exchange_of
from service.compute.breaker import Breaker
from service.compute.redis_client import RedisClient
from service.errors import RateLimited
from service.http.connection_tracker import client_of
from service.observe.telemetry import RedisFailure, Telemetry
from service.settings import RATE, Settings

CALLERS = 100_000  # in memory, some 300 bytes each; the least recently seen is dropped first
_PREFIX = "semblance:rate"
_NOBODY = ""  # a caller that no request has
_PERIODS = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}


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


class Rate:
    """Refuses callers who ask too often: by the name of their key, or else by address, which limits guesses."""

    def __init__(self, limit: RateLimit, app: ASGIApp, is_open: Callable[[Scope], bool]) -> None:
        """Prepare; requests for which `is_open` is true are not counted."""
        self._app = app
        self._limit = limit
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            RateLimited: too many requests with this key, or from this address without a key.
        """
        if not self._is_open(scope):
            name = exchange_of(scope).caller
            address = (scope.get("client") or ("",))[0]
            await self._limit.take(f"key:{name}" if name is not None else f"address:{client_of(address)}")
        await self._app(scope, receive, send)


class StoreWithClient(ConnectionFactory):
    """Gives a store of the library the client in its options, where it would make its own."""

    def connect(self, url: str | None = None) -> Any:
        """The client that the options gave."""
        return self.options["GIVEN"]()


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
        """Prepare the client; arguments as for `RateLimit` and `RedisCache`."""
        self._client = RedisClient(url, timeout_seconds=timeout_seconds)
        factory = f"{__name__}.{StoreWithClient.__name__}"
        store = RedisStore(options={"CONNECTION_FACTORY_CLASS": factory, "GIVEN": lambda: self._client.redis})
        self._callers = _counting(rate, store, _PREFIX)
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
        # Hashed, so that Redis holds no addresses or names of keys.
        name = hashlib.blake2b(caller.encode(), digest_size=16).hexdigest()
        try:
            result = await self._client.ask(lambda: self._callers.limit(name))
        except TimeoutError:
            await self._failed("timeout", f"no answer within {self._timeout * 1000:.0f} ms", began)
        except Exception as error:  # of the client, the event loop or the network
            await self._failed("error", self._client.reason(error), began)
        else:
            self._link.succeeded(began)
            return result
        return None

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._client.aclose()

    async def _failed(self, kind: RedisFailure, reason: str, began: int) -> None:
        self._telemetry.redis_failed(kind)
        self._link.failed(reason, began)
        await self._client.disconnect()


def open_rate_limit(settings: Settings, rate: str, telemetry: Telemetry) -> RateLimit:
    """The rate limit of the settings, counted in their Redis if they name one."""
    shared = None
    if settings.redis_url is not None:
        shared = SharedCounts(
            rate,
            telemetry,
            url=settings.redis_url.get_secret_value(),
            address=settings.redis_address or "",
            timeout_seconds=settings.redis_timeout_ms / 1000,
        )
    return RateLimit(rate, telemetry, shared)


def _counting(rate: str, store: MemoryStore | RedisStore, prefix: str | None = None) -> Throttled:
    parts = RATE.fullmatch(rate)
    assert parts is not None, "the settings let no other rate pass"
    quota = per_duration(_PERIODS[parts[2]], int(parts[1]))
    return Throttled(using="gcra", quota=quota, store=store, key_prefix=prefix)
