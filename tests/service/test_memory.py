"""How much memory a container may use, from cgroup folders as kernels and runtimes lay them out."""

import os
from pathlib import Path

import pytest

from service.memory import usable_memory

MACHINE = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
MB = 1_048_576
NONE_IN_V1 = "9223372036854771712\n"


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        pytest.param("0::/\n", {"memory.max": f"{64 * MB}\n"}, 64 * MB, id="v2"),
        pytest.param("0::/\n", {"memory.max": "max\n"}, MACHINE, id="v2, no limit"),
        pytest.param(
            "0::/a/b\n", {"a/b/memory.max": f"{64 * MB}\n", "a/memory.max": f"{32 * MB}\n"}, 32 * MB, id="v2, above"
        ),
        pytest.param("5:memory:/docker/01\n0::/\n", {"memory/memory.limit_in_bytes": f"{16 * MB}\n"}, 16 * MB, id="v1"),
        pytest.param("5:memory:/\n", {"memory/memory.limit_in_bytes": NONE_IN_V1}, MACHINE, id="v1, no limit"),
        pytest.param("", {}, MACHINE, id="no cgroups"),
    ],
)
def test_the_least_limit_counts(tmp_path: Path, own: str, files: dict[str, str], expected: float) -> None:
    for name, content in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "own").write_text(own)
    assert usable_memory(tmp_path / "fs", tmp_path / "own") == expected


def test_without_proc_it_is_the_machines(tmp_path: Path) -> None:
    assert usable_memory(tmp_path, tmp_path / "none") == MACHINE
