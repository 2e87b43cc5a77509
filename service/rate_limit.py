"""How often one caller may ask: the generic cell rate algorithm, kept in this process.

A caller who was silent may send the whole number at once; then the allowance grows back evenly over the period.
"""

from datetime import timedelta

from throttled.asyncio import MemoryStore, Throttled, per_duration

from service.errors import RateLimited
from service.settings import RATE
from service.telemetry import Telemetry

CALLERS = 100_000  # remembered; the one unseen for longest is forgotten first, some 300 bytes each
_PERIODS = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}


class RateLimit:
    """So many requests a period, for each caller."""

    def __init__(self, rate: str, telemetry: Telemetry) -> None:
        """Start with everybody's whole allowance.

        Args:
            rate: a number, a slash, and `second`, `minute` or `hour`.
            telemetry: counts what is refused.
        """
        parts = RATE.fullmatch(rate)
        assert parts is not None, "the settings let no other rate pass"
        self._rate = rate
        self._limit = int(parts[1])
        self._refused = telemetry.rate_limited
        self._callers = Throttled(
            using="gcra",
            quota=per_duration(_PERIODS[parts[2]], self._limit),
            store=MemoryStore(options={"MAX_SIZE": CALLERS}),
        )

    async def take(self, caller: str) -> None:
        """Count one request of a caller.

        Raises:
            RateLimited: it is one too many.
        """
        result = await self._callers.limit(caller)
        if result.limited:
            self._refused.inc()
            raise RateLimited(self._rate, self._limit, result.state.retry_after)
