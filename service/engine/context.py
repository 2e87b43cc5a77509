"""What is known of one request on its way down: whose it is, until when it must end, and where its time goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import perf_counter

from service.observe.metrics import QUEUE, Timings


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request; passed from its endpoint down to the engine. Times are those of `perf_counter`.

    Attributes:
        caller: `key:` and the name of the key, else `address:` and the client's; callers share the threads.
        deadline: when its time is over.
        timings: its seconds by phase.
        share: of its work from here on, that is asked of the engine now; see `part`.
        expected: seconds of all its work, as far as the queue knows; 0 while none needs a thread.
        ended: whether it is answered or given up. Others may still wait for what it has begun.
    """

    caller: str = ""
    deadline: float = inf
    timings: Timings = field(default_factory=Timings)
    share: float = 1.0
    expected: float = 0.0
    ended: bool = False
    _paused_since: float | None = None

    @property
    def left(self) -> float:
        """Seconds until its time is over."""
        return self.deadline - (perf_counter() if self._paused_since is None else self._paused_since)

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """What the block asks of the engine is this share of the work from here on: all of it decides who is let in."""
        self.share = share
        try:
            yield
        finally:
            self.share = 1.0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The block counts as waiting, and not against the time limit: what it waits for has its own."""
        began = self._paused_since = perf_counter()
        try:
            yield
        finally:
            ended = perf_counter()
            self._paused_since = None
            self.deadline += ended - began
            self.timings.spent(QUEUE, began, ended)
