"""The number of CPUs that this container may use, and the numbers of processes and threads.

A container sees all CPUs of its host, but its cgroup may limit CPU time to that of two. More threads than that are
stopped for tens of milliseconds, until the next period begins.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from service.settings import Settings

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Cpus:
    """A limit in CPUs, and its source."""

    count: float
    source: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of processes, and of threads in each."""

    workers: int
    worker_threads: int
    ort_threads: int


def usable_cpus(cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> Cpus:
    """The lowest limit among the affinity and the cgroups of this process and their ancestors.

    Args:
        cgroups: mount point of the cgroup file systems.
        own: a file as `/proc/self/cgroup`.
    """
    limits = [Cpus(len(os.sched_getaffinity(0)), "affinity"), *_quotas(cgroups, own)]
    return min(limits, key=lambda limit: limit.count)


def counts(settings: Settings, cpus: Cpus | None = None) -> Counts:
    """The numbers in the settings, and for `auto` those that fit `cpus`, by default the usable ones."""
    allowed = max(1, int((cpus or usable_cpus()).count))  # a fraction of a CPU is left to the event loop
    workers = allowed if settings.workers == "auto" else settings.workers
    share = max(1, allowed // workers)
    worker_threads = share if settings.worker_threads == "auto" else settings.worker_threads
    ort_threads = max(1, share // worker_threads) if settings.ort_threads == "auto" else settings.ort_threads
    return Counts(workers, worker_threads, ort_threads)


def _quotas(cgroups: Path, own: Path) -> Iterator[Cpus]:
    for version, mount, path in own_groups("cpu", cgroups, own):
        read, source = (
            (_of_version_2, "cgroup v2 cpu.max") if version == 2 else (_of_version_1, "cgroup v1 cpu.cfs_quota_us")
        )
        yield from (Cpus(count, source) for count in limits_above(mount, path, read))


def own_groups(controller: str, cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> Iterator[tuple[int, Path, str]]:
    """The cgroups of this process that may limit what a controller (`cpu`, `memory`) shares out.

    Args:
        controller: as version 1 names it.
        cgroups: mount point of the cgroup file systems.
        own: a file as `/proc/self/cgroup`.

    Yields:
        Version (1 or 2), mount, and the group's path in it.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:  # no Linux, or no /proc
        return
    for number, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if number == "0" and not controllers:
            yield 2, cgroups, path
            yield 2, cgroups / "unified", path
        elif controller in controllers.split(","):
            mounts = dict.fromkeys((controllers, controller))  # systemd mounts cpu,cpuacct, with a link named cpu
            yield from ((1, cgroups / mount, path) for mount in mounts)


def limits_above(mount: Path, path: str, read: Callable[[Path], float | None]) -> Iterator[float]:
    """The limits of a cgroup and of its ancestors, as `read` finds them in each folder.

    In a container the path may be that on the host, which is not mounted; so the root of the mount is always read.
    """
    folder = mount / path.strip("/")
    while True:
        limit = read(folder)
        if limit is not None:
            yield limit
        if folder == mount or mount not in folder.parents:
            return
        folder = folder.parent


def _of_version_2(folder: Path) -> float | None:
    quota, _, period = text_of(folder / "cpu.max").partition(" ")
    return _ratio(quota, period)


def _of_version_1(folder: Path) -> float | None:
    return _ratio(text_of(folder / "cpu.cfs_quota_us"), text_of(folder / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    """The quota in CPUs; None for `max`, `-1` and unreadable values."""
    if not quota.isdigit() or not period.isdigit() or not int(quota) or not int(period):
        return None
    return int(quota) / int(period)


def text_of(path: Path) -> str:
    """A small file's text; empty where it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
