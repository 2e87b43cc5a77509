"""What is measured of requests: their time by phase, counters and histograms, and the answer to a scrape.

**Time** of a request by phase: tokenising, waiting for a thread, caches, graph runs. Code in the event loop adds its
time to the `Timings` of the request, also for work in threads. The rest of the total is parsing, serialising
and the event loop.

**Counters and histograms** are without a lock, for metrics that every request updates. prometheus_client's own take
five times as long, and ten times in its multiprocess mode: a fifth of a small request. Only the event loop's thread
may update these, except a `LockedHistogram`. They are collected into prometheus_client's registry, and packed as JSON
for other processes.

**Scrapes** are answered by one rendering at a time, kept for a second by a process that serves alone. Rendering a
thousand series takes some 7 ms in a thread, and scrapes are not limited. So concurrent scrapes and those within a
second share one rendering. One of several workers keeps none: another one may have answered with younger figures
meanwhile, and then counters would fall. There scrapes share the next rendering that begins.
"""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from threading import Lock
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

PHASES = ("tokenise", "queue", "cache", "inference")
TOKENISE, QUEUE, CACHE, INFERENCE = range(len(PHASES))
_HEADER = b", ".join(b"%s;dur=%%.3f" % name.encode() for name in (*PHASES, "total"))

# Name, names of labels, names of buckets (None for a counter), and for each series its labels and numbers.
Packed = list[Any]
S = TypeVar("S")
_FEW = 16  # values that a loop sorts into buckets faster than numpy does

KEPT_SECONDS = 1.0
_OPENMETRICS = "application/openmetrics-text"
_FORMATS = {True: choose_encoder(f"{_OPENMETRICS}; version=1.0.0"), False: choose_encoder("")}
Page = tuple[bytes, str]  # content, content type


class Timings:
    """Seconds of one request in each phase."""

    __slots__ = ("seconds", "spans")

    def __init__(self, spans: bool = False) -> None:
        """Start at 0; with `spans`, also keep when each phase began and ended."""
        self.seconds = [0.0, 0.0, 0.0, 0.0]
        self.spans: list[tuple[int, float, float]] | None = [] if spans else None

    def spent(self, phase: int, began: float, ended: float) -> None:
        """Add an interval; times are those of `perf_counter`."""
        self.seconds[phase] += ended - began
        if self.spans is not None:
            self.spans.append((phase, began, ended))

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


class CounterSeries:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, by: int = 1) -> None:
        """Add `by` to the count."""
        self.value += by


class _Family(Collector, Generic[S]):
    """A series for each combination of labels that was asked for."""

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], make: Callable[[], S], registry: CollectorRegistry
    ) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._make = make
        self._series: dict[tuple[str, ...], S] = {}
        registry.register(self)

    def labels(self, *values: str) -> S:
        """The series with these labels; it exists from then on."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = self._make()
        return series

    def forget(self, label: str, value: str) -> None:
        """Remove all series with this value of a label."""
        place = self._labels.index(label)
        self._series = {values: series for values, series in self._series.items() if values[place] != value}


class CounterFamily(_Family[CounterSeries]):
    """A counter with a series for each combination of labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        super().__init__(name, documentation, labels, CounterSeries, registry)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """All series in the form of the Prometheus client."""
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, count in list(self._series.items()):
            family.add_metric(values, count.value)
        yield family

    def packed(self) -> Packed:
        """The series that are not at 0."""
        series = [[values, count.value] for values, count in self._series.items() if count.value]
        return [self._name, self._labels, None, series]


class Histogram:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "exemplars", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.exemplars: dict[int, Exemplar] = {}  # of a bucket: the trace of its last value that has one
        self.counts = [0] * (len(bounds) + 1)  # the last one: above all bounds
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Add one value to its bucket."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def trace(self, value: float, trace_id: str) -> None:
        """Remember the trace of a value, which was counted before, with the value's bucket."""
        self.exemplars[bisect_left(self._bounds, value)] = Exemplar({"trace_id": trace_id}, value, time.time())

    def observe_all(self, values: Sequence[float] | npt.NDArray[np.float64]) -> None:
        """Add many values to their buckets."""
        if len(values) <= _FEW:
            for value in values:
                self.observe(value)
            return
        values = np.asarray(values, np.float64)
        places = np.searchsorted(self._bounds, values, side="left")
        new = np.bincount(places, minlength=len(self.counts)).tolist()
        self.counts = [old + more for old, more in zip(self.counts, new, strict=True)]
        self.total += float(values.sum())


class LockedHistogram(Histogram):
    """The same for any thread; `observe_all` is not locked."""

    __slots__ = ("_lock",)

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__(bounds)
        self._lock = Lock()

    def observe(self, value: float) -> None:
        """Add one value to its bucket; in any thread."""
        with self._lock:
            super().observe(value)


class HistogramFamily(_Family[Histogram]):
    """A histogram with a series for each combination of labels."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        bounds: Sequence[float],
        registry: CollectorRegistry,
        kind: type[Histogram] = Histogram,
    ) -> None:
        """Register it; `bounds` are ascending, and a value equal to a bound is in its bucket."""
        self._names = [str(float(bound)) for bound in bounds] + ["+Inf"]
        super().__init__(name, documentation, labels, partial(kind, bounds), registry)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """For Prometheus: each bucket with all below it."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, series in list(self._series.items()):
            _add(family, self._names, values, series.counts, series.total, series.exemplars)
        yield family

    def packed(self) -> Packed:
        """The series that are not empty."""
        used = [[values, s.counts, s.total] for values, s in self._series.items() if any(s.counts)]
        return [self._name, self._labels, self._names, used]


def unpacked(packed: Packed) -> Metric:
    """The family that was packed, without its documentation."""
    name, labels, buckets, series = packed
    if buckets is None:
        counter = CounterMetricFamily(name, "", labels=labels)
        for values, count in series:
            counter.add_metric(values, count)
        return counter
    histogram = HistogramMetricFamily(name, "", labels=labels)
    for values, counts, total in series:
        _add(histogram, buckets, values, counts, total)
    return histogram


def _add(
    family: HistogramMetricFamily,
    names: Sequence[str],
    values: Sequence[str],
    counts: Sequence[int],
    total: float,
    exemplars: Mapping[int, Exemplar] = MappingProxyType({}),
) -> None:
    buckets = zip(names, accumulate(counts), map(exemplars.get, range(len(names))), strict=True)
    family.add_metric(values, list(buckets), total)  # type: ignore[arg-type]  # it takes None for no exemplar


class MetricRegistry(CollectorRegistry):
    """prometheus_client's registry, with the families of this module listed apart from other collectors."""

    def __init__(self) -> None:
        super().__init__()
        self.tallies: list[CounterFamily | HistogramFamily] = []
        self.others: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Collect this one too."""
        super().register(collector)
        if isinstance(collector, CounterFamily | HistogramFamily):
            self.tallies.append(collector)
        else:
            self.others.append(collector)

    def collect_in_parts(self) -> Iterable[Metric]:
        """All families: other collectors' are collected at once, in the event loop; tallies' in any thread."""
        others = [family for collector in self.others for family in collector.collect()]
        return chain(others, chain.from_iterable(tally.collect() for tally in self.tallies))


class FamilyCollector(Collector):
    """A collector of given families."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """The metric families of one scrape."""
        return self._families


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
