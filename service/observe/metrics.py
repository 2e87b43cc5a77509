"""What is measured of requests: their time by phase, and the answer to a scrape.

**Time** of a request by phase: tokenising, waiting for a thread, caches, graph runs. Code in the event loop adds its
time to the request's context (`RequestContext.spent`), also for work in threads. The rest of the total is parsing,
serialising and the event loop.

**Scrapes** are answered by one rendering at a time, kept for a second by a process that serves alone. Rendering a
thousand series takes some 7 ms in a thread, and scrapes are not limited. So concurrent scrapes and those within a
second share one rendering. One of several workers keeps none: another one may have answered with younger figures
meanwhile, and then counters would fall. There scrapes share the next rendering that begins.
"""

import asyncio
import time
from collections.abc import Callable

from prometheus_client import Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

PHASES = ("tokenise", "queue", "cache", "inference")
TOKENISE, QUEUE, CACHE, INFERENCE = range(len(PHASES))

KEPT_SECONDS = 1.0
_LAG_LOOK_SECONDS = 0.02  # work that takes longer is always noticed, shorter work sometimes
_OPENMETRICS = "application/openmetrics-text"
_FORMATS = {True: choose_encoder(f"{_OPENMETRICS}; version=1.0.0"), False: choose_encoder("")}
Page = tuple[bytes, str]  # content, content type


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
        self._at = self._loop.time() + _LAG_LOOK_SECONDS
        self._next = self._loop.call_at(self._at, self._look)

    def _look(self) -> None:
        self._lags.observe(max(0.0, self._loop.time() - self._at))
        self._due()


class Exposition:
    """Renders both formats on demand."""

    def __init__(self, refresh: Callable[[], None], metrics: Collector, *, kept_seconds: float = KEPT_SECONDS) -> None:
        """Prepare; `refresh` is called in the event loop, then `metrics` are collected in another thread."""
        self._refresh = refresh
        self._metrics = metrics
        self._kept_seconds = kept_seconds
        self._clock = time.monotonic
        self._lock = asyncio.Lock()
        self._pages: dict[bool, tuple[float, Page]] = {}  # OpenMetrics or not -> the time of its figures, the page

    async def page(self, accept: str) -> Page:
        """The metrics, at most so much older than this call; OpenMetrics 1.0.0 if Accept asks for it."""
        openmetrics = wants_openmetrics(accept)
        oldest = self._clock() - self._kept_seconds
        async with self._lock:
            at, page = self._pages.get(openmetrics, (0.0, None))
            if page is None or at < oldest:
                encode, content_type = _FORMATS[openmetrics]
                at = self._clock()
                self._refresh()
                page = await asyncio.to_thread(encode, self._metrics), content_type
                self._pages[openmetrics] = at, page
        return page


def wants_openmetrics(accept: str) -> bool:
    """Whether an Accept header asks for a known version of OpenMetrics.

    Versions and escapings are not told apart: 1.0.0 is valid for later versions, our names need no escaping, and the
    number of renderings stays two.
    """
    try:
        _, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is no number
        return False
    return content_type.startswith(_OPENMETRICS)
