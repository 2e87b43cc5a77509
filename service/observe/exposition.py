"""The answer to a scrape: one rendering at a time, kept for a second by a process that serves alone.

Rendering a thousand series takes some 7 ms in a thread, and scrapes are not limited. So concurrent scrapes and those
within a second share one rendering. One of several workers keeps none: another one may have answered with younger
figures meanwhile, and then counters would fall. There scrapes share the next rendering that begins.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

KEPT_SECONDS = 1.0
_OPENMETRICS = "application/openmetrics-text"
_FORMATS = {True: choose_encoder(f"{_OPENMETRICS}; version=1.0.0"), False: choose_encoder("")}


class FamilyCollector(Collector):
    """A collector of given families."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """The metric families of one scrape."""
        return self._families


Page = tuple[bytes, str]  # content, content type


class Exposition:
    """Renders both formats on demand."""

    def __init__(self, scrape: Callable[[], Iterable[Metric]], clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; `scrape` is called in the event loop, and its families are iterated in another thread."""
        self._scrape = scrape
        self.kept_seconds = KEPT_SECONDS
        self._clock = clock
        self._rendering: asyncio.Task[None] | None = None
        self._pages: dict[bool, tuple[float, Page]] = {}  # OpenMetrics or not -> the time of its figures, the page

    async def page(self, accept: str) -> Page:
        """The metrics, at most `kept_seconds` older than this call; OpenMetrics 1.0.0 if Accept asks for it."""
        openmetrics = wants_openmetrics(accept)
        oldest = self._clock() - self.kept_seconds
        while True:
            at, page = self._pages.get(openmetrics, (0.0, None))
            if page is not None and at >= oldest:
                return page
            if self._rendering is None or self._rendering.done():
                self._rendering = asyncio.get_running_loop().create_task(self._render(openmetrics))
            # Shielded: a scraper that leaves does not cancel the rendering of others.
            await asyncio.shield(self._rendering)

    async def _render(self, openmetrics: bool) -> None:
        encode, content_type = _FORMATS[openmetrics]
        at = self._clock()
        content = await asyncio.to_thread(encode, FamilyCollector(self._scrape()))
        self._pages[openmetrics] = at, (content, content_type)


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
