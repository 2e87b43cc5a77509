"""What a container may use, from cgroup folders as kernels and runtimes lay them out."""

import os
from pathlib import Path

import pytest

from service.machine import Counts, counts, usable_cpus, usable_memory
from service.settings import Settings

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
        pytest.param("0::/\n", {}, 64, id="a root that has no cpu.max"),
        pytest.param(
            "0::/system.slice/semblance.service\n",
            {"system.slice/semblance.service/cpu.max": "400000 100000\n", "system.slice/cpu.max": "300000 100000\n"},
            3.0,
            id="the group above allows less",
        ),
        pytest.param("0::/docker/0123\n", {"cpu.max": "200000 100000\n"}, 2.0, id="the path is the host's"),
        pytest.param("1:cpu:/a\n0::/\n", {"cpu.max": "800000 100000\n"}, 8.0, id="beside groups of version 1"),
        pytest.param("0::/\n", {"cpu.max": "99900000 100000\n"}, 64, id="a quota above the affinity"),
        pytest.param("nonsense\n", {"cpu.max": "100000 100000\n"}, 64, id="what no kernel writes"),
        pytest.param("0::/\n", {"cpu.max": "nonsense\n"}, 64, id="nor this"),
        pytest.param("0::/\n", {"cpu.max": "0 0\n"}, 64, id="nothing of nothing"),
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
        ({}, 0.5, Counts(1, 1, 1)),
        ({"workers": "auto"}, 8, Counts(8, 1, 1)),
        ({"workers": "auto"}, 2.9, Counts(2, 1, 1)),
        ({"workers": 2}, 8, Counts(2, 4, 1)),
        ({"workers": 3}, 8, Counts(3, 2, 1)),
        ({"workers": 4}, 2, Counts(4, 1, 1)),
        ({"workers": 2, "worker_threads": 1}, 8, Counts(2, 1, 4)),
    ],
)
def test_the_cpus_are_shared_out(settings: dict[str, object], cpus: float, expected: Counts) -> None:
    assert counts(Settings(**settings), cpus) == expected  # type: ignore[arg-type]
