"""The work of one request in pieces."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from time import perf_counter
from typing import Any, Generic, TypeVar

from service.compute.concurrency import AdmittedWork
from service.observe.timings import INFERENCE

P = TypeVar("P")  # a piece of work
K = TypeVar("K")  # key of a result
R = TypeVar("R")  # a result
J = TypeVar("J", bound="Job[Any, Any, Any]")


class Job(Generic[P, K, R]):
    """The pieces of work of one request; `future` gets their results, by key, when the last piece is done."""

    __slots__ = ("_left", "_phase", "_results", "_seen", "admission", "future", "pieces")

    def __init__(self, pieces: Sequence[P], admission: AdmittedWork, phase: int = INFERENCE) -> None:
        """Queue at least one piece of an admitted request, whose timings get their time in the phase `phase`."""
        self.future: asyncio.Future[dict[K, R]] = asyncio.get_running_loop().create_future()
        self.pieces = list(pieces)[::-1]  # not begun; the next one last
        self.admission = admission
        self._seen = perf_counter()  # end of the time that is already in its timings
        self._left = len(pieces)
        self._results: dict[K, R] = {}
        self._phase = phase

    @property
    def may_begin(self) -> bool:
        """Whether the request has time left, or is over while others wait for its work."""
        timings = self.admission.timings
        return timings.ended or timings.left() > 0

    def receive(self, seconds: float, began: float, ended: float, outcome: Mapping[K, R] | Exception) -> None:
        """Add the results of a piece of so many expected seconds; an exception fails the whole request."""
        self.admission.did(seconds)
        if self.future.done():  # cancelled, or another piece has failed
            return
        self._seen = self.admission.timings.waited(self._phase, self._seen, began, ended)
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
            return
        self._results.update(outcome)
        self._left -= 1
        if not self._left:
            self.future.set_result(self._results)


def waiting(jobs: Iterable[J]) -> list[J]:
    """Those that nobody has cancelled, and of which no piece has failed; what cannot end in time any more fails."""
    left = []
    for job in jobs:
        if job.future.done():
            continue
        if job.admission.hopeless is not None:
            job.future.set_exception(job.admission.hopeless)
        else:
            left.append(job)
    return left


def first_turn(jobs: Iterable[Job[Any, Any, Any]]) -> float:
    """The lowest turn of those that may begin; infinity where there is none."""
    return min((job.admission.turn for job in jobs if job.may_begin), default=inf)
