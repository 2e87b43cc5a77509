"""Where a request's time goes: reading its texts, waiting for a thread, asking the cache, running graphs.

Whatever spends the time says so to the request it works for; what is left of the whole is parsing, serialising and the
event loop. In a thread nothing is noted: who waits for the thread notes it.
"""

from contextvars import ContextVar

PHASES = ("tokenise", "queue", "cache", "inference")
TOKENISE, QUEUE, CACHE, INFERENCE = range(len(PHASES))
_HEADER = b", ".join(b"%s;dur=%%.3f" % name.encode() for name in (*PHASES, "total"))


class Place:
    """Of a request among those let in: what its work is expected to take."""

    __slots__ = ("announced", "declared", "expected_seconds")

    def __init__(self, declared: float, announced: float) -> None:
        self.announced = announced  # when it was let in
        self.declared = declared  # by the stages of its work that have begun
        self.expected_seconds = announced  # as known by now

    def declare(self, seconds: float) -> None:
        """Another stage begins."""
        self.declared += seconds
        self.expected_seconds = max(self.expected_seconds, self.declared)


class Timings:
    """Seconds of one request in each of the phases."""

    __slots__ = ("ended", "place", "seconds", "spans")

    def __init__(self, spans: bool = False) -> None:
        """Start at nothing; with `spans`, remember also when each phase began and ended."""
        self.seconds = [0.0, 0.0, 0.0, 0.0]
        self.spans: list[tuple[int, float, float]] | None = [] if spans else None
        self.place: Place | None = None  # among the requests that the workers have let in
        self.ended = False  # the request, whoever else still waits for what is done for it

    def spent(self, phase: int, began: float, ended: float) -> None:
        """Note a stretch of time, as `perf_counter` tells it."""
        self.seconds[phase] += ended - began
        if self.spans is not None:
            self.spans.append((phase, began, ended))

    def waited(self, phase: int, since: float, began: float, ended: float) -> float:
        """Note work that was waited for since a time until which all is noted; until when it is now.

        Two pieces of it may have run at the same time: that is spent once.
        """
        if began > since:
            self.spent(QUEUE, since, began)
        if ended > since:
            self.spent(phase, max(began, since), ended)
        return max(since, ended)

    def header(self, total: float) -> bytes:
        """The value of `Server-Timing`: milliseconds in each phase, and the seconds of the whole request in all."""
        tokenise, queue, cache, inference = self.seconds
        return _HEADER % (tokenise * 1e3, queue * 1e3, cache * 1e3, inference * 1e3, total * 1e3)


NOBODYS = Timings()  # outside of requests, at start-up and in health checks, what is noted is nobody's
TIMINGS: ContextVar[Timings] = ContextVar("timings", default=NOBODYS)  # meant to be shared
