"""When to ask again, and how long to wait before: shared by both clients. Every request here only reads.

A service says how long to wait in `retry-after-ms` or `Retry-After`; without either the wait doubles from try to
try. Both get a little more at random, so that clients refused together do not come back together.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypedDict

from tenacity import RetryCallState, retry_base, retry_if_exception, stop_after_attempt, wait_random
from tenacity.stop import stop_base
from tenacity.wait import wait_base, wait_combine, wait_exponential

from semblance.errors import NoAnswer, RequestFailed

AGAIN = frozenset({408, 429, 502, 503, 504})


class Plan(TypedDict):
    """What both `tenacity.Retrying` and `tenacity.AsyncRetrying` take."""

    stop: stop_base
    wait: wait_base
    retry: retry_base
    reraise: bool


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how patiently; times in seconds."""

    retries: int = 3  # after the first try
    first_wait: float = 0.5
    longest_wait: float = 8.0  # of our own; the service may ask for more
    patience: float = 60.0  # whoever asks for more than this is not asked again
    jitter: float = 0.25

    def plan(self) -> Plan:
        """The parts of a retrying call."""
        growing = wait_exponential(multiplier=self.first_wait, max=self.longest_wait)
        return {
            "stop": stop_after_attempt(self.retries + 1),
            "wait": wait_combine(_AskedOr(growing), wait_random(0, self.jitter)),
            "retry": retry_if_exception(self.worth_it),
            "reraise": True,
        }

    def worth_it(self, error: BaseException) -> bool:
        """Whether the same request may fare better later."""
        if isinstance(error, RequestFailed):
            return error.status in AGAIN and (error.retry_after or 0) <= self.patience
        return isinstance(error, NoAnswer)


class _AskedOr(wait_base):
    """As long as the service asked, or else our own wait."""

    def __init__(self, own: wait_base) -> None:
        self._own = own

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        if isinstance(error, RequestFailed) and error.retry_after is not None:
            return error.retry_after
        return self._own(retry_state)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait that an answer's headers ask for; None where they ask for nothing that can be read.

    Args:
        headers: with names in lower case, or a mapping that does not mind.
        now: seconds since the epoch, for a Retry-After that is a date; the clock's by default.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            pass
    try:
        when = parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError):
        return None
    return max(0.0, when - (time.time() if now is None else now))
