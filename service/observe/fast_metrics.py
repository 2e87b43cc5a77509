"""Counters and histograms without a lock, for metrics that every request updates.

prometheus_client's own take five times as long, and ten times in its multiprocess mode: a fifth of a small request.
Only the event loop's thread may update these, except a `LockedHistogram`. They are collected into prometheus_client's
registry, and packed as JSON for other processes.
"""

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
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

# Name, names of labels, names of buckets (None for a counter), and for each series its labels and numbers.
Packed = list[Any]
S = TypeVar("S")
_FEW = 16  # values that a loop sorts into buckets faster than numpy does


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
