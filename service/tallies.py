"""Counters and histograms for the road that every request takes, at a sixth of what prometheus_client's own cost.

Those lock, so that every thread may count; these are for the event loop's thread alone, unless they say otherwise. They
are collected into the same registry, and look the same from outside. They can also be packed into little JSON, and
unpacked in another process.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Packed = list[
    Any
]  # name, names of labels, names of buckets (a counter has none), and for each series labels and numbers
_FEW = 16  # values that a loop sorts into buckets faster than numpy does


class Count:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, by: int = 1) -> None:
        """Count further."""
        self.value += by


class Counts(Collector):
    """A counter: a series for each combination of labels that was asked for."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._series: dict[tuple[str, ...], Count] = {}
        registry.register(self)

    def labels(self, *values: object) -> Count:
        """The series with these labels; it exists from then on."""
        return self._series.setdefault(tuple(map(str, values)), Count())

    def remove(self, *values: object) -> None:
        """Forget the series with these labels, if there is one."""
        self._series.pop(tuple(map(str, values)), None)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """For Prometheus."""
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, count in self._series.items():
            family.add_metric(values, count.value)
        yield family

    def packed(self) -> Packed:
        """The series that are not at 0."""
        series = [[values, count.value] for values, count in self._series.items() if count.value]
        return [self._name, self._labels, None, series]


class Distribution:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # the last one: above all bounds
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def observe_all(self, values: Sequence[float] | npt.NDArray[np.float64]) -> None:
        """Count many values."""
        if len(values) <= _FEW:
            for value in values:
                self.observe(value)
            return
        values = np.asarray(values, np.float64)
        places = np.searchsorted(self._bounds, values, side="left")
        new = np.bincount(places, minlength=len(self.counts)).tolist()
        self.counts = [old + more for old, more in zip(self.counts, new, strict=True)]
        self.total += float(values.sum())


class LockedDistribution(Distribution):
    """The same for any thread, value by value."""

    __slots__ = ("_lock",)

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__(bounds)
        self._lock = Lock()

    def observe(self, value: float) -> None:
        """Count a value."""
        with self._lock:
            super().observe(value)


class Distributions(Collector):
    """A histogram: a series for each combination of labels that was asked for."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        bounds: Sequence[float],
        registry: CollectorRegistry,
        before: Callable[[], None] = lambda: None,
        kind: type[Distribution] = Distribution,
    ) -> None:
        """Register it.

        Args:
            name: of the metric.
            documentation: what it is.
            labels: their names.
            bounds: of the buckets, upwards; each belongs to the bucket below it.
            registry: where it is collected.
            before: called when it is about to be collected.
            kind: of the series; who may count.
        """
        self._name, self._documentation, self._labels, self._bounds = name, documentation, labels, bounds
        self._names = [str(float(bound)) for bound in bounds] + ["+Inf"]
        self._before = before
        self._kind = kind
        self._series: dict[tuple[str, ...], Distribution] = {}
        registry.register(self)

    def labels(self, *values: object) -> Distribution:
        """The series with these labels; it exists from then on."""
        return self._series.setdefault(tuple(map(str, values)), self._kind(self._bounds))

    def remove(self, *values: object) -> None:
        """Forget the series with these labels, if there is one."""
        self._series.pop(tuple(map(str, values)), None)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """For Prometheus: each bucket with all below it."""
        self._before()
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, series in self._series.items():
            _add(family, self._names, values, series.counts, series.total)
        yield family

    def packed(self) -> Packed:
        """The series that are not empty."""
        self._before()
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
    family: HistogramMetricFamily, names: Sequence[str], values: Sequence[str], counts: Sequence[int], total: float
) -> None:
    family.add_metric(values, list(zip(names, accumulate(counts), strict=True)), total)


class Registry(CollectorRegistry):
    """Prometheus' own, which knows its tallies from what else it collects."""

    def __init__(self) -> None:
        super().__init__()
        self.tallies: list[Counts | Distributions] = []
        self.others: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Collect this one too."""
        super().register(collector)
        if isinstance(collector, Counts | Distributions):
            self.tallies.append(collector)
        else:
            self.others.append(collector)
