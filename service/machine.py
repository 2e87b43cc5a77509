"""What this container may use of its machine: CPUs and memory, and what follows: processes, threads, arenas.

A container sees all CPUs and the whole memory of its host, but its cgroup (version 2) may limit them. More threads than
CPUs are stopped for tens of milliseconds, until the next period begins.
"""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from service.settings import Settings

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


ARENAS = 2
MAPPED_BYTES = 131_072
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3  # of mallopt, in glibc's malloc.h


class Counts(NamedTuple):
    """The numbers of processes, of threads in each for graph runs, and of threads inside a run."""

    workers: int
    worker_threads: int
    ort_threads: int


def usable_cpus(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> float:
    """CPUs: the least of this process' affinity, and of the quotas of its cgroup and those above.

    Args:
        cgroups: mount point of the cgroup file system.
        own: a file as `/proc/self/cgroup`.
    """
    quotas = (limit.split() for limit in _limits("cpu.max", cgroups, own))
    cpus = [int(quota[0]) / int(quota[1]) for quota in quotas if len(quota) == 2 and "0" not in quota]
    return min([float(len(os.sched_getaffinity(0))), *cpus])


def usable_memory(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> float:
    """Bytes: the least of the machine's memory, and of the limits of this process' cgroup and those above.

    Args:
        cgroups: mount point of the cgroup file system.
        own: a file as `/proc/self/cgroup`.
    """
    machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min([machine, *map(float, _limits("memory.max", cgroups, own))])


def counts(settings: Settings, cpus: float | None = None) -> Counts:
    """The numbers in the settings, and for `auto` those that fit `cpus`, by default the usable ones."""
    allowed = max(1, int(usable_cpus() if cpus is None else cpus))  # a fraction of a CPU is left to the event loop
    workers = allowed if settings.workers == "auto" else settings.workers
    share = max(1, allowed // workers)
    worker_threads = share if settings.worker_threads == "auto" else settings.worker_threads
    return Counts(workers, worker_threads, max(1, share // worker_threads))


def bound_arenas() -> None:
    """Let all threads allocate from few arenas, and map what is large by itself, so that it is returned when freed.

    glibc gives each thread an arena of its own, which keeps what was freed in it, and puts ever larger blocks there:
    with all models open, 270 MB were held so after a few minutes, and memory grew for half an hour. Whoever sets
    `MALLOC_ARENA_MAX` in the environment makes this choice instead.
    """
    if (choose := getattr(ctypes.CDLL(None), "mallopt", None)) is not None and "MALLOC_ARENA_MAX" not in os.environ:
        choose(_M_ARENA_MAX, ARENAS)
        choose(_M_MMAP_THRESHOLD, MAPPED_BYTES)


def trim_allocator() -> None:
    """Return free memory to the system; glibc's allocator keeps most of it otherwise."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _limits(name: str, cgroups: Path, own: Path) -> Iterator[str]:
    """What the files of this name say, in the folder of this process' cgroup and in those above; only numbers.

    In a container the path may be that on the host, which is not mounted: the mount's root is always read.
    """
    try:
        groups = [line.removeprefix("0::/") for line in own.read_text().splitlines() if line.startswith("0::/")]
    except OSError:  # no Linux, or no /proc
        return
    for group in groups:
        for folder in (cgroups / group, *(cgroups / group).parents):
            if folder.is_relative_to(cgroups):
                try:
                    limit = (folder / name).read_text().strip()
                except OSError:
                    continue
                if limit.replace(" ", "").isdigit():
                    yield limit
