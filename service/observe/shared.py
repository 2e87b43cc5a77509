"""The files of several workers' metrics: read by whoever is scraped, and those of ended workers made one set.

Otherwise each worker that ends would leave some 60 KB behind. A scrape that reads them holds a lock meanwhile, so that
it finds nothing twice; the parent, which moves them, does not wait for it, but tries again later.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

_ENDED = 0  # no process id: of the set of those that ended
_ADDED = ("counter", "histogram", "summary")


@contextmanager
def locked(folder: str, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Hold the folder's lock, shared with other readers unless `how` says otherwise."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, how)
        yield
    finally:
        os.close(lock)


def read(folder: str) -> Iterable[Metric]:
    """The families of all workers together, also of those that ended."""
    with locked(folder):
        files = [str(path) for path in Path(folder).glob("*.db") if _is_begun(path)]
        families: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
    return families


def add_up_ended(folder: str, pids: set[int | None]) -> None:
    """Move what these processes counted to the set of those that ended; they are forgotten when that is done."""
    try:
        with locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for kind in _ADDED:
                for path in [Path(folder, f"{kind}_{pid}.db") for pid in pids]:
                    if _is_begun(path):
                        _add(path, Path(folder, f"{kind}_{_ENDED}.db"))
            pids.clear()
    except BlockingIOError:  # a scrape reads
        return


def _is_begun(path: Path) -> bool:
    """Whether a file can be read: its worker makes it empty, and gives it its size and head a moment later."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:  # the gauges of a worker that has ended
        return False


def _add(path: Path, ended: Path) -> None:
    values = list(MmapedDict.read_all_values_from_file(path))  # type: ignore[no-untyped-call]
    total = MmapedDict(ended)  # type: ignore[no-untyped-call]
    for key, value, at, _ in values:
        before, _ = total.read_value(key)  # type: ignore[no-untyped-call]
        total.write_value(key, before + value, at)  # type: ignore[no-untyped-call]
    total.close()  # type: ignore[no-untyped-call]
    path.unlink()
