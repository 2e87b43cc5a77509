"""How fast work is done: the seconds that pass for each expected one, measured in the last seconds."""

from collections.abc import Callable
from math import exp

_LASTS = 5.0  # seconds in which a measurement loses most of its weight
_UNMEASURED = 0.25  # expected seconds that the guess weighs, which holds while little was measured
_CAUTIOUS = 2.0  # the guess for what has a time limit: a machine that others use as much
_SLOWEST = 30.0  # times the expected seconds: what takes longer is a stopped process, not slow work


class Pace:
    """Seconds that pass in a thread for each second of expected work; a moving average over batches.

    Expected times are CPU seconds, measured while nothing else ran. Other processes on the same cores, contention
    between threads and an event loop that hands work over late make real times longer by this factor. A measurement
    that is old says nothing of the machine now: then the guess counts again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with nothing measured."""
        self._clock = clock
        self._passed = self._expected = 0.0
        self._at = clock()  # of the last measurement

    def ran(self, expected_seconds: float, seconds: float) -> None:
        """Work was done that was expected to take `expected_seconds`; both more than 0."""
        kept = self._kept()
        self._passed = kept * self._passed + min(seconds, _SLOWEST * expected_seconds)
        self._expected = kept * self._expected + expected_seconds
        self._at = self._clock()

    @property
    def recent(self) -> float:
        """The factor, at least 1; that of an idle machine while nothing was measured."""
        return self._with(1.0)

    @property
    def cautious(self) -> float:
        """The factor to promise an end by: while little was measured, that of a machine that others use too."""
        return self._with(_CAUTIOUS)

    def _with(self, guess: float) -> float:
        kept = self._kept()
        passed, expected = kept * self._passed, kept * self._expected
        return max(1.0, (_UNMEASURED * guess + passed) / (_UNMEASURED + expected))

    def _kept(self) -> float:
        return exp((self._at - self._clock()) / _LASTS)
