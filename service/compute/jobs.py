"""The work of one request in pieces, and the choice of the next request."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Generic, TypeVar

from service.observe.timings import INFERENCE, Timings

_LEAST_NEED = 1e-6  # seconds

P = TypeVar("P")  # a piece of work
K = TypeVar("K")  # key of a result
R = TypeVar("R")  # a result


class Job(Generic[P, K, R]):
    """The pieces of work of one request; `future` gets their results, by key, when the last piece is done."""

    __slots__ = ("_left", "_phase", "_results", "_seen", "_timings", "came", "future", "needs", "pieces")

    def __init__(self, pieces: Sequence[P], needs: float, timings: Timings, phase: int = INFERENCE) -> None:
        """Queue at least one piece; all take `needs` expected seconds, which `timings` gets in the phase `phase`."""
        self.future: asyncio.Future[dict[K, R]] = asyncio.get_running_loop().create_future()
        self.pieces = list(pieces)[::-1]  # not begun; the next one last
        self.needs = needs  # expected seconds of what is not begun
        self.came = self._seen = perf_counter()  # the latter: end of the time already in `timings`
        self._left = len(pieces)
        self._results: dict[K, R] = {}
        self._timings = timings
        self._phase = phase

    def begin(self, seconds: float) -> P:
        """Take the next piece, which is expected to take `seconds`."""
        self.needs -= seconds
        return self.pieces.pop()

    def receive(self, began: float, ended: float, outcome: Mapping[K, R] | Exception) -> None:
        """Add the results of a piece; an exception fails the whole request."""
        if self.future.done():  # cancelled, or another piece has failed
            return
        self._seen = self._timings.waited(self._phase, self._seen, began, ended)
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
            return
        self._results.update(outcome)
        self._left -= 1
        if not self._left:
            self.future.set_result(self._results)


def highest_ratio(waiting: Iterable[Job[P, K, R]]) -> Job[P, K, R]:
    """The request with the largest ratio of time waited to time needed (Brinch Hansen 1971).

    Among equals it is the one that came first; small requests come before large ones, unless these have waited long.
    """
    now = perf_counter()
    return max(waiting, key=lambda each: (now - each.came) / max(each.needs, _LEAST_NEED))
