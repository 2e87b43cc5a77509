"""Flow control of a batch: while the service refuses requests, fewer are in flight, then each carries fewer rows.

Additive increase and multiplicative decrease (Chiu & Jain 1989) of two numbers: requests in flight, and rows of a
request. All requests of a batch pause together for as long as the service asks.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic

from semblance.errors import RequestFailed, StillBusy
from semblance.retries import AGAIN

OVERLOADED = 429
FIRST_WAIT = 0.25  # seconds; doubled with each refusal in a row
LONGEST_WAIT = 8.0  # where the service names no time
JITTER = 0.1  # random share added to a wait, so that batches refused together do not retry together
STEPS = 32  # answers until a request has grown from one row to the most
ROUNDS = 8  # of answers to all requests in flight, until one more may be


def is_busy(error: RequestFailed) -> bool:
    """Whether the refusal is temporary."""
    return error.status in AGAIN


class Pace:
    """Shared by all requests of one batch."""

    def __init__(
        self,
        concurrency: int,
        patience: float,
        *,
        say: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Start with full concurrency.

        Args:
            concurrency: most requests in flight at once.
            patience: seconds without any answer after which the batch gives up.
            say: called once, with a message, when the service is busy.
            sleep: waits; takes seconds.
            clock: monotonic seconds.
        """
        self.rows = 1  # of the next request, at most
        self._most_rows = 1
        self._concurrency = concurrency
        self._width = float(concurrency)  # requests that may be in flight now
        self._under_way = 0
        self._ended = asyncio.Condition()
        self._patience = patience
        self._say, self._sleep, self._clock = say, sleep, clock
        self._said = False
        self._not_before = -math.inf
        self._narrowed = -math.inf
        self._refused_since: float | None = None
        self._refusals = 0  # in a row

    def allow(self, rows: int) -> None:
        """Set the most rows of a request."""
        self.rows = self._most_rows = rows

    @asynccontextmanager
    async def turn(self, rows: int) -> AsyncIterator[None]:
        """Wait until a request of `rows` rows may be sent; its outcome adjusts the pace.

        Raises:
            StillBusy: this request was refused, and so were all others for longer than `patience`.
        """
        began = await self._begin()
        try:
            yield
        except RequestFailed as error:
            if is_busy(error):
                self._refused(error, rows, began)
            else:
                self._answered()
            raise
        else:
            self._answered()
        finally:
            async with self._ended:
                self._under_way -= 1
                self._ended.notify_all()

    async def _begin(self) -> float:
        """Wait for a free slot; the time when it was taken."""
        while True:
            if self._under_way >= int(self._width):
                async with self._ended:
                    await self._ended.wait()
            elif (left := self._not_before - self._clock()) > 0:
                await self._sleep(left)
            else:
                self._under_way += 1
                return self._clock()

    def recover(self) -> None:
        """Reset the rows of a request to the most: one row was slow, not the service."""
        self.rows = self._most_rows

    def _answered(self) -> None:
        self._refused_since = None
        self._refusals = 0
        self._width = min(self._concurrency, self._width + 1 / (ROUNDS * self._width))
        self.rows = min(self._most_rows, self.rows + max(1, self._most_rows // STEPS))

    def _refused(self, error: RequestFailed, rows: int, began: float) -> None:
        now = self._clock()
        if self._refused_since is None:
            self._refused_since = now
        wait = max(error.retry_after or 0.0, min(LONGEST_WAIT, FIRST_WAIT * 2**self._refusals))
        if now + wait > self._refused_since + self._patience:
            raise StillBusy(error, self._patience) from error
        self._not_before = max(self._not_before, now + wait * (1 + random.uniform(0, JITTER)))
        # Smaller requests do not help against a rate limit; against too many at once, fewer in flight help first.
        if error.code != "rate_limited" and (self._width < 2 or error.status != OVERLOADED):
            self.rows = min(self.rows, max(1, rows // 2))
        if began > self._narrowed:  # refusals of requests sent before the last decrease do not count again
            self._narrowed = now
            self._refusals += 1
            self._width = max(1.0, self._width / 2)
        if not self._said:
            self._said = True
            self._say("the service is busy: asking more slowly, and waiting as it asks")
