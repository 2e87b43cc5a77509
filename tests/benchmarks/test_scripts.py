"""No benchmark names what our packages no longer have: they run by hand and rarely, and would rot unseen."""

import ast
import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path.relative_to(BENCHMARKS).as_posix() for path in BENCHMARKS.rglob("*.py"))
OURS = ("contract", "service", "training", "semblance")


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_it_imports_of_ours_is_there(name: str) -> None:
    tree = ast.parse((BENCHMARKS / name).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


def test_there_are_scripts() -> None:
    assert "throughput.py" in SCRIPTS
