"""When a client retries, and how long it waits before. All requests are idempotent.

The wait is what `retry-after-ms` or `Retry-After` says; without either it doubles with each try. A random extra is
added, so that clients that were refused together do not retry together.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Self

from tenacity import RetryCallState, retry_if_exception, stop_before_delay, wait_exponential

from semblance.errors import NoAnswer, RequestFailed

AGAIN = frozenset({408, 429, 502, 503, 504})
TIMEOUT = "timeout"  # the code of a request that exceeds the service's time limit


@dataclass(frozen=True, slots=True)
class Retries:
    """Settings of retrying; times in seconds."""

    retries: int = 3  # after the first try
    first_wait: float = 0.5
    longest_wait: float = 8.0  # where the service names no time
    patience: float = 60.0  # no retry where the service asks for a longer wait
    jitter: float = 0.25
    statuses: frozenset[int] = AGAIN  # statuses to retry; a request without an answer is always retried
    within: float | None = None  # for how long refusals are retried, beside `retries` lost connections; None: as these
    final: frozenset[str] = frozenset()  # codes of refusals that are not retried

    @classmethod
    def of_batch(cls, patience: float) -> Self:
        """Those of a batch, which goes on asking a busy service, and divides what takes too long."""
        return cls(patience=patience, within=patience, final=frozenset({TIMEOUT}))

    def plan(self) -> dict[str, Any]:
        """The arguments for `tenacity.Retrying` and `tenacity.AsyncRetrying`."""
        return {"stop": self.enough, "wait": self.pause, "retry": retry_if_exception(self.worth_it), "reraise": True}

    def worth_it(self, error: BaseException) -> bool:
        """Whether to retry after this error."""
        if isinstance(error, RequestFailed):
            asked = error.status in self.statuses and error.code not in self.final
            return asked and (error.retry_after or 0) <= self.patience
        return isinstance(error, NoAnswer)

    def enough(self, state: RetryCallState) -> bool:
        """Whether to give up after this try."""
        error = state.outcome.exception() if state.outcome else None
        if self.within is None:
            return state.attempt_number > self.retries
        if isinstance(error, RequestFailed):
            return bool(stop_before_delay(self.within)(state))
        counts = state.retry_object.statistics  # of this request
        counts["lost"] = counts.get("lost", 0) + 1
        return bool(counts["lost"] > self.retries)

    def pause(self, state: RetryCallState) -> float:
        """Seconds to wait before the next try: as many as the service asked for, or ever more; and a random extra."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, RequestFailed) else None
        growing = wait_exponential(multiplier=self.first_wait, max=self.longest_wait)(state)
        return (growing if asked is None else asked) + random.uniform(0, self.jitter)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait by an answer's headers; None where they name no valid time.

    Args:
        headers: with names in lower case, or case-insensitive.
        now: seconds since the epoch, for a Retry-After that is a date; None: the clock's.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            pass
    try:
        when = parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    return max(0.0, when - (time.time() if now is None else now))
