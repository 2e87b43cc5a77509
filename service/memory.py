"""How much memory this container may use: the least of its cgroups' limits and of what the machine has."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from service.cpus import CGROUPS, OWN_CGROUPS, limits_above, own_groups, text_of


def usable_memory(cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> float:
    """Bytes that all processes of this container may use together.

    Args:
        cgroups: mount point of the cgroup file systems.
        own: a file as `/proc/self/cgroup`.
    """
    return min([float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")), *_limits(cgroups, own)])


def _limits(cgroups: Path, own: Path) -> Iterator[float]:
    for version, mount, path in own_groups("memory", cgroups, own):
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        yield from limits_above(mount, path, partial(_bytes, name))


def _bytes(name: str, folder: Path) -> float | None:
    """The limit; None for `max` and what cannot be read. Without a limit version 1 gives a number beyond any memory."""
    limit = text_of(folder / name)
    return float(limit) if limit.isdigit() and int(limit) else None
