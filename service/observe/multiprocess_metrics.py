"""Metrics of several worker processes: the worker that is scraped answers for all of them.

Each worker writes a snapshot of its metrics into a common folder: every second, before it answers a scrape, and at its
end. A scrape adds the other workers' snapshots to its own metrics, so figures are at most a second old. When a worker
ends, the supervisor adds its counters to those of earlier ones and removes its file, so counters never fall.

prometheus_client's multiprocess mode is not used: it is slower (`service/observe/metrics.py` has figures), has no
info metrics and no process collector, and cannot remove the series of a model.
"""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from service.observe.logs import fields
from service.observe.metrics import MetricRegistry, Packed, unpacked
from service.observe.telemetry import WORKER_RESTARTS, Ending

log = logging.getLogger(__name__)

Key = tuple[str, tuple[tuple[str, str], ...]]  # a sample's name and labels
Families = dict[str, tuple[str, dict[Key, float]]]  # name -> (type, samples)

GONE = "gone.json"  # counters of the workers that ended, and their names
_GROWING = frozenset({"counter", "histogram"})
_LEAST = frozenset(
    {
        "semblance_memory_limit_bytes",
        "semblance_models_reload_success_timestamp_seconds",
        "semblance_ready",
        "semblance_redis_up",
        "semblance_redis_writable",
        "process_start_time_seconds",
        "process_max_fds",
    }
)
_MOST = frozenset({"python_info", "semblance_models_refused", "semblance_redis_wanted"})


class WorkerSnapshots:
    """The snapshots of one worker."""

    def __init__(self, folder: Path, number: int, registry: MetricRegistry) -> None:
        """Prepare; the workers share `folder`, and `number` is never used again."""
        self._folder = folder
        self._own = f"{number}.json"
        self._registry = registry
        self._works = True

    def write(self) -> None:
        """Write this worker's snapshot; after a failure, which is logged once, the old one stays."""
        try:
            others = (family for collector in self._registry.others for family in collector.collect())
            tallies = [tally.packed() for tally in self._registry.tallies]
            save(self._folder / self._own, read_families(others), packed=tallies)
        except OSError as error:
            if self._works:
                log.warning(
                    "this worker's metrics are missing where other workers are scraped",
                    extra=fields(path=str(self._folder), reason=error.strerror or type(error).__name__),
                )
            self._works = False
        else:
            self._works = True

    def collect(self) -> Iterator[Metric]:
        """The families of all workers together; the files are read during the iteration, in any thread."""
        own = list(self._registry.collect())
        self.write()  # afterwards: what others read of this worker is never less than what it shows itself
        return self._join(own)

    def _join(self, own: Iterable[Metric]) -> Iterator[Metric]:
        others: Families = {}
        for families in self._read_others():
            add(others, families)
        for family in own:
            _, more = others.get(family.name, ("", {}))
            yield _joined(family, more)

    def _read_others(self) -> Iterator[Families]:
        """The other workers' snapshots, then the ended workers'. One that ends in between counts once."""
        found: dict[str, Families] = {}
        for path in self._folder.glob("[0-9]*.json"):
            if path.name != self._own:
                try:
                    found[path.name], _ = load(path)
                except FileNotFoundError:  # it has ended, and is in GONE
                    continue
        try:
            gone, ended = load(self._folder / GONE)
        except FileNotFoundError:  # nobody has ended yet
            gone, ended = {}, []
        yield from (families for name, families in found.items() if name not in ended)
        yield gone


class EndedWorkers:
    """The counters of workers that ended, and the number of replacements; kept by the supervisor."""

    REMEMBERED = 100  # names of ended workers; more than end during one read

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sums: Families = {}
        self._names: list[str] = []

    def add(self, number: int, reason: Ending | None) -> None:
        """Add the counters of a worker that has ended; `reason` is None if it is not replaced."""
        path = self._folder / f"{number}.json"
        try:
            families, _ = load(path)
        except FileNotFoundError:  # it ended before its first snapshot
            families = {}
        add(self._sums, {name: family for name, family in families.items() if family[0] in _GROWING})
        if reason is not None:
            key: Key = (f"{WORKER_RESTARTS}_total", (("reason", reason),))
            add(self._sums, {WORKER_RESTARTS: ("counter", {key: 1.0})})
        self._names = [*self._names, path.name][-self.REMEMBERED :]
        save(self._folder / GONE, self._sums, self._names)
        for written in (path, _draft(path)):
            written.unlink(missing_ok=True)


def read_families(families: Iterable[Metric]) -> Families:
    """The types and samples of families."""
    return {
        family.name: (family.type, {_key(sample): _summable(sample.value) for sample in family.samples})
        for family in families
    }


def add(sums: Families, more: Families) -> None:
    """Add a snapshot to another; see `_rule`."""
    for name, (kind, samples) in more.items():
        into = sums.setdefault(name, (kind, {}))[1]
        for key, value in samples.items():
            into[key] = _rule(name, kind, key[0])(into[key], value) if key in into else value


def save(path: Path, families: Families, ended: Iterable[str] = (), packed: Sequence[Packed] = ()) -> None:
    """Write a snapshot atomically; `ended` are the files of workers that it includes.

    Raises:
        OSError: it cannot be written.
    """
    content = {
        "ended": list(ended),
        "packed": packed,
        "families": [
            [name, kind, [[*key, value] for key, value in samples.items()]]
            for name, (kind, samples) in families.items()
        ],
    }
    draft = _draft(path)
    draft.write_text(json.dumps(content))
    os.replace(draft, path)


def _draft(path: Path) -> Path:
    return path.with_suffix(".draft")


def load(path: Path) -> tuple[Families, list[str]]:
    """Read a snapshot, and the files of workers that it includes.

    Raises:
        FileNotFoundError: there is none.
    """
    content: dict[str, Any] = json.loads(path.read_bytes())
    families: Families = {
        name: (kind, {(sample, tuple((label, of) for label, of in labels)): value for sample, labels, value in samples})
        for name, kind, samples in content["families"]
    }
    return families | read_families(map(unpacked, content["packed"])), content["ended"]


def _rule(family: str, kind: str, sample: str) -> Callable[[float, float], float]:
    """The function that joins the values of one series in two workers."""
    if sample.endswith("_created") or family in _LEAST:
        return min
    if kind == "info" or family in _MOST:
        return max
    return _sum


def _sum(a: float, b: float) -> float:
    return a + b


_PARTS = 2.0**20  # in a unit


def _summable(value: float) -> float:
    """The nearest multiple of 2^-20: sums of such numbers are exact in any order.

    Workers are added in another order after one has ended. A sum of seconds then fell by its last bit, and Prometheus
    takes a counter that falls for one that began again.
    """
    return round(value * _PARTS) / _PARTS if abs(value) < _PARTS**2 else value


def _key(sample: Sample) -> Key:
    return sample.name, tuple(sample.labels.items())


def _joined(family: Metric, more: dict[Key, float]) -> Metric:
    """A family with the values of other workers; series that only they have come last."""
    joined = Metric(family.name, family.documentation, family.type, family.unit)
    left = dict(more)
    for sample in family.samples:
        value, others = _summable(sample.value), left.pop(_key(sample), None)
        if others is not None:
            value = _rule(family.name, family.type, sample.name)(value, others)
        joined.samples.append(sample._replace(value=value))
    joined.samples += [Sample(name, dict(labels), value) for (name, labels), value in left.items()]
    return joined
