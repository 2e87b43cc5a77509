"""How many CPUs a container may use, from cgroup folders as kernels and runtimes lay them out."""

import os
from pathlib import Path

import pytest

from service.cpus import Counts, Cpus, counts, usable_cpus
from service.settings import Settings

V2 = "cgroup v2 cpu.max"
V1 = "cgroup v1 cpu.cfs_quota_us"
AFFINITY = Cpus(64, "affinity")


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
        pytest.param("0::/\n", {"cpu.max": "150000 100000\n"}, Cpus(1.5, V2), id="v2, a namespace of its own"),
        pytest.param("0::/\n", {"cpu.max": "max 100000\n"}, AFFINITY, id="v2, no limit"),
        pytest.param("0::/\n", {}, AFFINITY, id="v2, a root that has no cpu.max"),
        pytest.param(
            "0::/system.slice/semblance.service\n",
            {
                "system.slice/semblance.service/cpu.max": "400000 100000\n",
                "system.slice/cpu.max": "300000 100000\n",
            },
            Cpus(3.0, V2),
            id="v2, the group above allows less",
        ),
        pytest.param(
            "0::/docker/0123\n", {"cpu.max": "200000 100000\n"}, Cpus(2.0, V2), id="v2, the path is the host's"
        ),
        pytest.param(
            "4:memory:/\n3:cpu,cpuacct:/docker/0123\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "50000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
            Cpus(0.5, V1),
            id="v1, both controllers in one mount",
        ),
        pytest.param(
            "1:cpu:/a\n0::/\n",
            {"cpu/a/cpu.cfs_quota_us": "800000\n", "cpu/a/cpu.cfs_period_us": "100000\n"},
            Cpus(8.0, V1),
            id="v1 beside an empty v2",
        ),
        pytest.param(
            "1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, AFFINITY, id="v1, none"
        ),
        pytest.param(
            "2:cpuacct:/\n1:cpuset:/\n",
            {"cpuacct/cpu.cfs_quota_us": "100000\n", "cpuacct/cpu.cfs_period_us": "100000\n"},
            AFFINITY,
            id="controllers that only sound like it",
        ),
        pytest.param("0::/\n", {"cpu.max": "99900000 100000\n"}, AFFINITY, id="a quota above the affinity"),
        pytest.param("nonsense\n", {"cpu.max": "nonsense\n"}, AFFINITY, id="what no kernel writes"),
        pytest.param("0::/\n", {"cpu.max": "0 0\n"}, AFFINITY, id="nothing of nothing"),
    ],
)
def test_the_quota_of_a_container(tmp_path: Path, own: str, files: dict[str, str], expected: Cpus) -> None:
    assert usable_cpus(*cgroups(tmp_path, own, files)) == expected


def test_where_there_are_no_cgroups_affinity_counts(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path / "fs", tmp_path / "own") == AFFINITY


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
        ({"worker_threads": 3, "ort_threads": 5}, 1, Counts(1, 3, 5)),
        ({"ort_threads": 4}, 8, Counts(1, 8, 4)),
    ],
)
def test_the_cpus_are_shared_out(settings: dict[str, object], cpus: float, expected: Counts) -> None:
    assert counts(Settings(**settings), Cpus(cpus, "a test")) == expected  # type: ignore[arg-type]
