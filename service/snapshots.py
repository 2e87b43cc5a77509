"""Metrics of several worker processes as if they were one: whoever is scraped answers for all.

Each worker writes what it has measured into a folder that only the service can read: every second, when it is scraped,
and as its last act. A scrape adds its own, live, to what the others have written, so a figure is at most a second old.
When a worker ends, the supervisor adds its counters to those of all that ended before, and takes its file away:
counters never go back, and there are never more files than workers. A worker that is scraped writes before it answers,
so two scrapes answered by two workers never disagree about the past.

prometheus_client has a multiprocess mode of its own, but that keeps its values in mapped files from the moment a metric
is made; ours count in plain attributes (`service/tallies.py`), because every request does.
"""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from service.logs import fields
from service.tallies import Packed, Registry, unpacked
from service.telemetry import WORKER_RESTARTS, Ending

log = logging.getLogger(__name__)

Key = tuple[str, tuple[tuple[str, str], ...]]  # a sample's name and labels
Families = dict[str, tuple[str, dict[Key, float]]]  # name -> (type, samples)

GONE = "gone.json"  # what the workers that ended had counted, and who they are
_GROWING = frozenset({"counter", "histogram"})
_LEAST = frozenset(
    {
        "semblance_models_reload_success_timestamp_seconds",
        "semblance_redis_up",
        "process_start_time_seconds",
        "process_max_fds",
    }
)
_MOST = frozenset({"python_info"})


class Collected(Collector):
    """Families from elsewhere, to be put into words."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """These."""
        return self._families


class Snapshots:
    """One worker's part in the folder."""

    def __init__(self, folder: Path, number: int, registry: Registry) -> None:
        """Take part; nothing is written yet.

        Args:
            folder: shared with the other workers, and with nobody else.
            number: of this worker; no other one ever has it.
            registry: what this worker measures.
        """
        self._folder = folder
        self._own = f"{number}.json"
        self._registry = registry
        self._works = True

    def write(self) -> None:
        """Tell the others how it stands; a failure is logged, once, and leaves them what they know."""
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
        """The families of all workers together; who goes through them, in any thread, reads what the others wrote."""
        self.write()
        return self._join(list(self._registry.collect()))

    def _join(self, own: Iterable[Metric]) -> Iterator[Metric]:
        others: Families = {}
        for families in self._read_others():
            add(others, families)
        for family in own:
            _, more = others.get(family.name, ("", {}))
            yield _joined(family, more) if more else family

    def _read_others(self) -> Iterator[Families]:
        """The others' files first, and then who is gone: who ended in between is in both, and counts once."""
        found: dict[str, Families] = {}
        for path in self._folder.glob("[0-9]*.json"):
            if path.name != self._own:
                try:
                    found[path.name], _ = load(path)
                except FileNotFoundError:  # ended since; what it counted is among what is gone
                    continue
        try:
            gone, ended = load(self._folder / GONE)
        except FileNotFoundError:  # nobody has ended yet
            gone, ended = {}, []
        yield from (families for name, families in found.items() if name not in ended)
        yield gone


class Ended:
    """The supervisor's part: what workers that ended had counted, and how often one was replaced."""

    REMEMBERED = 100  # of those who ended: nobody reads for so long that more of them end meanwhile

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sums: Families = {}
        self._names: list[str] = []

    def bury(self, number: int, reason: Ending | None) -> None:
        """Keep what a worker that has ended had counted.

        Args:
            number: of the worker.
            reason: for which it is replaced; None where it is not.
        """
        path = self._folder / f"{number}.json"
        try:
            families, _ = load(path)
        except FileNotFoundError:  # it had not begun
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
    """What a snapshot keeps of families."""
    return {
        family.name: (family.type, {_key(sample): sample.value for sample in family.samples}) for family in families
    }


def add(sums: Families, more: Families) -> None:
    """Join snapshots, into the first one: counters and histograms are added up, gauges as `_rule` has it."""
    for name, (kind, samples) in more.items():
        into = sums.setdefault(name, (kind, {}))[1]
        for key, value in samples.items():
            into[key] = _rule(name, kind, key[0])(into[key], value) if key in into else value


def save(path: Path, families: Families, ended: Iterable[str] = (), packed: Sequence[Packed] = ()) -> None:
    """Write a snapshot; whoever reads meanwhile reads the old one.

    Args:
        path: where.
        families: of it.
        ended: files it stands for besides.
        packed: families that take less room and time so.

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
    """Read a snapshot, and which files it stands for besides.

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
    """How the values of one series in two workers become one."""
    if sample.endswith("_created") or family in _LEAST:
        return min
    if kind == "info" or family in _MOST:
        return max
    return _sum


def _sum(a: float, b: float) -> float:
    return a + b


def _key(sample: Sample) -> Key:
    return sample.name, tuple(sample.labels.items())


def _joined(family: Metric, more: dict[Key, float]) -> Metric:
    """A family with what others have of it; series that only they have come last."""
    joined = Metric(family.name, family.documentation, family.type, family.unit)
    left = dict(more)
    for sample in family.samples:
        value = left.pop(_key(sample), None)
        if value is not None:
            sample = sample._replace(value=_rule(family.name, family.type, sample.name)(sample.value, value))
        joined.samples.append(sample)
    joined.samples += [Sample(name, dict(labels), value) for (name, labels), value in left.items()]
    return joined
