"""The lag of the event loop: how long a request waits because other work keeps the loop busy."""

import asyncio

from service.observe.fast_metrics import Histogram

LOOK_SECONDS = 0.02  # work that takes longer is always noticed, shorter work sometimes


class LoopLag:
    """Schedules a callback again and again, and records how late each is called."""

    def __init__(self, lags: Histogram) -> None:
        """Prepare; `lags` gets seconds, of which up to 0.001 is the resolution of libuv's timers."""
        self._lags = lags
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Measure the running loop."""
        self._loop = asyncio.get_running_loop()
        self._due()

    def stop(self) -> None:
        """Cancel the next measurement of the lag."""
        if self._next is not None:
            self._next.cancel()

    def _due(self) -> None:
        self._at = self._loop.time() + LOOK_SECONDS
        self._next = self._loop.call_at(self._at, self._look)

    def _look(self) -> None:
        self._lags.observe(max(0.0, self._loop.time() - self._at))
        self._due()
