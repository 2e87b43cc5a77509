"""What a container may use, from cgroup folders as kernels and runtimes lay them out."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from service.machine import Counts, counts, usable_cpus, usable_memory
from service.settings import Settings

ROOT = Path(__file__).parents[2]
MACHINE = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
MB = 1_048_576


@pytest.fixture(autouse=True)
def many_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))


def cgroups(folder: Path, own: str, files: dict[str, str]) -> tuple[Path, Path]:
    for name, content in files.items():
        path = folder / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "own").write_text(own)
    return folder / "fs", folder / "own"


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        pytest.param("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5, id="a namespace of its own"),
        pytest.param("0::/\n", {"cpu.max": "max 100000\n"}, 64, id="no limit"),
        pytest.param(
            "0::/system.slice/semblance.service\n",
            {"system.slice/semblance.service/cpu.max": "400000 100000\n", "system.slice/cpu.max": "300000 100000\n"},
            3.0,
            id="the group above allows less",
        ),
        pytest.param("0::/docker/0123\n", {"cpu.max": "200000 100000\n"}, 2.0, id="the path is the host's"),
        pytest.param("1:cpu:/a\n0::/\n", {"cpu.max": "800000 100000\n"}, 8.0, id="beside groups of version 1"),
        pytest.param("0::/\n", {"cpu.max": "99900000 100000\n"}, 64, id="a quota above the affinity"),
        pytest.param("0::/\n", {"cpu.max": "nonsense\n"}, 64, id="nor this"),
    ],
)
def test_the_quota_of_a_container(tmp_path: Path, own: str, files: dict[str, str], expected: float) -> None:
    assert usable_cpus(*cgroups(tmp_path, own, files)) == expected


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        pytest.param("0::/\n", {"memory.max": f"{64 * MB}\n"}, 64 * MB, id="a limit"),
        pytest.param("0::/\n", {"memory.max": "max\n"}, MACHINE, id="no limit"),
        pytest.param(
            "0::/a/b\n", {"a/b/memory.max": f"{64 * MB}\n", "a/memory.max": f"{32 * MB}\n"}, 32 * MB, id="above"
        ),
        pytest.param("", {}, MACHINE, id="no cgroups"),
    ],
)
def test_the_memory_of_a_container(tmp_path: Path, own: str, files: dict[str, str], expected: float) -> None:
    assert usable_memory(*cgroups(tmp_path, own, files)) == expected


def test_where_there_are_no_cgroups_the_machine_counts(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path / "fs", tmp_path / "own") == 64
    assert usable_memory(tmp_path / "fs", tmp_path / "own") == MACHINE


@pytest.mark.parametrize(
    ("settings", "cpus", "expected"),
    [
        ({}, 8, Counts(workers=1, worker_threads=8, ort_threads=1)),
        ({"workers": "auto"}, 8, Counts(8, 1, 1)),
        ({"workers": "auto"}, 2.9, Counts(2, 1, 1)),
        ({"workers": 4}, 2, Counts(4, 1, 1)),
        ({"workers": 2, "worker_threads": 1}, 8, Counts(2, 1, 4)),
    ],
)
def test_the_cpus_are_shared_out(settings: dict[str, object], cpus: float, expected: Counts) -> None:
    assert counts(Settings(**settings), cpus) == expected  # type: ignore[arg-type]


ARENAS_OF_THREADS = """
import ctypes, sys
from threading import Barrier, Thread
from service.machine import bound_arenas

libc = ctypes.CDLL(None)
libc.fopen.restype, libc.malloc.restype = ctypes.c_void_p, ctypes.c_void_p
bound_arenas()
together = Barrier(6)

def allocate():
    libc.malloc(ctypes.c_size_t(1000))
    together.wait()

threads = [Thread(target=allocate) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_threads_share_two_arenas_unless_the_environment_says_otherwise(tmp_path: Path) -> None:
    found = {}
    for name, more in {"ours": {}, "theirs": {"MALLOC_ARENA_MAX": "4"}}.items():
        report, inherited = tmp_path / name, {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
        subprocess.run(
            [sys.executable, "-c", ARENAS_OF_THREADS, str(report)], cwd=ROOT, env=inherited | more, check=True
        )
        found[name] = report.read_text().count("<heap nr=")
    assert found == {"ours": 2, "theirs": 4}
