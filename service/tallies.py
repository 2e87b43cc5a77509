"""Counters and histograms for the road that every request takes, at a sixth of what prometheus_client's own cost.

Those lock, so that every thread may count; these are for the event loop's thread alone. They are collected into the
same registry, and look the same from outside.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

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

    def collect(self, used_only: bool = False) -> Iterator[CounterMetricFamily]:
        """For Prometheus; `used_only` leaves out the series that are at 0."""
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, count in self._series.items():
            if count.value or not used_only:
                family.add_metric(values, count.value)
        yield family


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
    ) -> None:
        """Register it.

        Args:
            name: of the metric.
            documentation: what it is.
            labels: their names.
            bounds: of the buckets, upwards; each belongs to the bucket below it.
            registry: where it is collected.
            before: called when it is about to be collected.
        """
        self._name, self._documentation, self._labels, self._bounds = name, documentation, labels, bounds
        self._names = [str(float(bound)) for bound in bounds] + ["+Inf"]
        self._before = before
        self._series: dict[tuple[str, ...], Distribution] = {}
        registry.register(self)

    def labels(self, *values: object) -> Distribution:
        """The series with these labels; it exists from then on."""
        return self._series.setdefault(tuple(map(str, values)), Distribution(self._bounds))

    def remove(self, *values: object) -> None:
        """Forget the series with these labels, if there is one."""
        self._series.pop(tuple(map(str, values)), None)

    def collect(self, used_only: bool = False) -> Iterator[HistogramMetricFamily]:
        """For Prometheus: each bucket with all below it; `used_only` leaves out the series that are empty."""
        self._before()
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, series in self._series.items():
            if used_only and not any(series.counts):
                continue
            below = list(accumulate(series.counts))
            family.add_metric(values, list(zip(self._names, below, strict=True)), series.total)
        yield family


class Registry(CollectorRegistry):
    """Prometheus' own, which can also leave out most of what is at 0."""

    def __init__(self) -> None:
        super().__init__()
        self._collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Collect this one too."""
        super().register(collector)
        self._collectors.append(collector)

    def collect_used(self) -> Iterator[Metric]:
        """Everything, but of the tallies here only the series that are not at 0."""
        for collector in self._collectors:
            if isinstance(collector, Counts | Distributions):
                yield from collector.collect(used_only=True)
            else:
                yield from collector.collect()
