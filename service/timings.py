"""Where a request's time goes: reading its texts, waiting for a thread, asking the cache, running graphs.

Whatever spends the time says so to the request it works for; what is left of the whole is parsing, serialising and the
event loop. In a thread nothing is noted: who waits for the thread notes it.
"""

from contextvars import ContextVar

PHASES = ("tokenise", "queue", "cache", "inference")
TOKENISE, QUEUE, CACHE, INFERENCE = range(len(PHASES))
_HEADER = b", ".join(b"%s;dur=%%.3f" % name.encode() for name in (*PHASES, "total"))


class Timings:
    """Seconds of one request in each of the phases."""

    __slots__ = ("admitted", "seconds", "spans")

    def __init__(self, spans: bool = False) -> None:
        """Start at nothing; with `spans`, remember also when each phase began and ended."""
        self.seconds = [0.0, 0.0, 0.0, 0.0]
        self.spans: list[tuple[int, float, float]] | None = [] if spans else None
        self.admitted = False  # whether the workers have let the request in (see `service/workers.py`)

    def spent(self, phase: int, began: float, ended: float) -> None:
        """Note a stretch of time, as `perf_counter` tells it."""
        self.seconds[phase] += ended - began
        if self.spans is not None:
            self.spans.append((phase, began, ended))

    def header(self, total: float) -> bytes:
        """The value of `Server-Timing`: milliseconds in each phase, and the seconds of the whole request in all."""
        tokenise, queue, cache, inference = self.seconds
        return _HEADER % (tokenise * 1e3, queue * 1e3, cache * 1e3, inference * 1e3, total * 1e3)


NOBODYS = Timings()  # outside of requests, at start-up and in health checks, what is noted is nobody's
TIMINGS: ContextVar[Timings] = ContextVar("timings", default=NOBODYS)  # meant to be shared
