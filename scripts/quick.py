"""`make quick`: lint of what changed, all types, and the tests that name what changed, in under a minute.

What changed is what differs from the last commit; where nothing does, the last commit itself. A test file is run if it
changed, if it mirrors a changed module (`tests/service/compute/test_lru.py` for `service/compute/lru.py`), or if it
imports one. That finds most faults, not all: `make test` runs everything.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALWAYS = ("tests/service/test_layers.py", "tests/training/test_layers.py", "tests/test_imports.py")


def changed() -> list[Path]:
    """Python files that differ from the last commit, or that it changed, by path under the root."""

    def listed(*command: str) -> set[str]:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    found = listed("diff", "--name-only", "HEAD") | listed("ls-files", "--others", "--exclude-standard")
    found = found or listed("diff", "--name-only", "HEAD~1", "HEAD")
    return sorted(Path(name) for name in found if name.endswith(".py") and (ROOT / name).is_file())


def reached_by(files: list[Path], tests: dict[Path, str]) -> list[Path]:
    """The test files to run.

    Args:
        files: what changed, by path under the root.
        tests: the text of every test file, by path under the root.
    """
    chosen = {Path(name) for name in ALWAYS} | {file for file in files if file in tests}
    for file in files:
        if file.parts[0] == "tests":
            continue
        mirror = Path("tests", *file.parts[:-1], f"test_{file.stem}.py")
        module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        parent, _, name = module.rpartition(".")
        names = (f"from {module} import", f"import {module}\n", f"from {parent} import {name}\n")
        chosen |= {test for test, text in tests.items() if test == mirror or any(each in text for each in names)}
    return sorted(chosen & tests.keys())


def main() -> int:
    """Run the three; the first that fails ends it with its exit code."""
    files = changed()
    tests = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")}
    chosen = [str(path) for path in reached_by(files, tests)]
    sources = [str(file) for file in files]
    for command in (
        ["ruff", "check", *sources] if sources else [],
        ["ruff", "format", "--check", *sources] if sources else [],
        ["mypy"],
        ["pytest", "-n", "2", "--dist", "loadfile", "-x", "-m", "not slow", *chosen],
    ):
        if command and (code := subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
