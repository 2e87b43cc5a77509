"""The time of a request by phase: tokenising, waiting for a thread, caches, graph runs.

Code in the event loop adds its time to the `Timings` of the current request, also for work in threads. The rest of the
total is parsing, serialising and the event loop.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import perf_counter

PHASES = ("tokenise", "queue", "cache", "inference")
TOKENISE, QUEUE, CACHE, INFERENCE = range(len(PHASES))
_HEADER = b", ".join(b"%s;dur=%%.3f" % name.encode() for name in (*PHASES, "total"))


class Timings:
    """Seconds of one request in each phase."""

    __slots__ = (
        "_free", "_free_since", "_frees", "capability", "ended", "expected", "languages", "seconds", "share", "spans",
        "until",
    )  # fmt: skip

    def __init__(self, spans: bool = False) -> None:
        """Start at 0; with `spans`, also keep when each phase began and ended."""
        self.seconds = [0.0, 0.0, 0.0, 0.0]
        self.spans: list[tuple[int, float, float]] | None = [] if spans else None
        self.ended = False  # the request has been answered or given up
        self.capability: str | None = None  # that the first model was picked for
        self.languages: dict[str, None] = {}  # hints on texts in other languages than the model's, each once
        self.share = 1.0  # of the request's work, that is asked of the pool now; see `part`
        self.expected = 0.0  # seconds of all its work; 0 while none needs a thread
        self.until = inf  # when its time is over, without what is free
        self._free, self._frees, self._free_since = 0.0, 0, 0.0

    def spent(self, phase: int, began: float, ended: float) -> None:
        """Add an interval; times are those of `perf_counter`."""
        self.seconds[phase] += ended - began
        if self.spans is not None:
            self.spans.append((phase, began, ended))

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """What the block asks of the pool is this share of the request's work: whether it is let in depends on all."""
        self.share = share
        try:
            yield
        finally:
            self.share = 1.0

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """The block counts as waiting, and not against the request's time limit: what it waits for has its own."""
        began = perf_counter()
        if not self._frees:
            self._free_since = began
        self._frees += 1
        try:
            yield
        finally:
            ended = perf_counter()
            self._frees -= 1
            if not self._frees:
                self._free += ended - self._free_since
            self.spent(QUEUE, began, ended)

    def free(self) -> float:
        """Seconds so far that do not count against the time limit."""
        return self._free + (perf_counter() - self._free_since if self._frees else 0.0)

    def left(self) -> float:
        """Seconds until its time is over."""
        return self.until + self.free() - perf_counter()

    def waited(self, phase: int, since: float, began: float, ended: float) -> float:
        """Add a piece of work in a thread, and the wait before it; pieces that overlap count once.

        Args:
            phase: of the work.
            since: end of the time that is already added.
            began: begin of the work.
            ended: end of the work.

        Returns:
            The new end of the time that is added.
        """
        if began > since:
            self.spent(QUEUE, since, began)
        if ended > since:
            self.spent(phase, max(began, since), ended)
        return max(since, ended)

    def header(self, total: float) -> bytes:
        """The value of `Server-Timing`, in milliseconds; `total` is in seconds."""
        tokenise, queue, cache, inference = self.seconds
        return _HEADER % (tokenise * 1e3, queue * 1e3, cache * 1e3, inference * 1e3, total * 1e3)


NO_REQUEST = Timings()  # of work outside requests, such as start-up and health checks; never read
TIMINGS: ContextVar[Timings] = ContextVar("timings", default=NO_REQUEST)
