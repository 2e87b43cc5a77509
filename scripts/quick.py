"""`make quick`: lint of what changed, its types, and the tests that a change can reach, in under a minute.

What changed is what differs from the last commit; where nothing does, the last commit itself. Types are checked of the
changed modules, of those that import them and of what these import. A test file is run if it changed, if it mirrors a
changed module (`tests/service/engine/test_pool.py` for `service/engine/pool.py`), or if it imports one; mirrors come
first. Files that take more than ten seconds are named and left to `make test`, unless they changed, and so is what is
not done within the minute.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("core", "service", "training", "workbench", "semblance", "benchmarks", "scripts")
ALWAYS = ("tests/test_layers.py", "tests/test_names.py")
# Files, or folders, whose tests export graphs, open every published model, or start services and browsers.
SLOW = (
    "tests/client/test_docs.py",
    "tests/client/test_tutorial.py",
    "tests/deploy",
    "tests/dialects",
    "tests/parity",
    "tests/service/routes/test_openapi.py",
    "tests/service/routes/test_properties.py",
    "tests/service/playground",
    "tests/service/process",
    "tests/test_packages.py",
    "tests/training/architectures",
    "tests/training/families",
    "tests/training/publishing",
    "tests/training/runs",
    "tests/workbench",
)
SECONDS = 55.0


def changed() -> list[Path]:
    """Python files that differ from the last commit, or that it changed, by path under the root."""

    def listed(*command: str) -> set[str]:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    found = listed("diff", "--name-only", "HEAD") | listed("ls-files", "--others", "--exclude-standard")
    found = found or listed("diff", "--name-only", "HEAD~1", "HEAD")
    return sorted(Path(name) for name in found if name.endswith(".py") and (ROOT / name).is_file())


def _imports(text: str, file: Path) -> bool:
    module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    parent, _, name = module.rpartition(".")
    return any(
        each in text for each in (f"from {module} import", f"import {module}\n", f"from {parent} import {name}\n")
    )


def typed(files: Iterable[Path], sources: Mapping[Path, str]) -> list[Path]:
    """The changed modules and those that import them.

    Args:
        files: what changed, by path under the root.
        sources: the text of every module that mypy checks, by path under the root.
    """
    modules = [file for file in files if file in sources]
    return sorted(
        {*modules, *(path for path, text in sources.items() if any(_imports(text, file) for file in modules))}
    )


def reached_by(files: Iterable[Path], tests: Mapping[Path, str]) -> tuple[list[Path], list[Path]]:
    """The test files to run, in order, and those that are slow, left to `make test`.

    Args:
        files: what changed, by path under the root.
        tests: the text of every test file, by path under the root.
    """
    files = list(files)
    modules = [file for file in files if file.parts[0] != "tests"]
    mirrors = {Path("tests", *file.parts[:-1], f"test_{file.stem}.py") for file in modules}
    importing = {test for test, text in tests.items() if any(_imports(text, file) for file in modules)}
    edited = [file for file in files if file in tests]
    chosen = list(dict.fromkeys([*edited, *sorted(mirrors), *map(Path, ALWAYS), *sorted(importing)]))
    chosen = [test for test in chosen if test in tests]
    slow = [test for test in chosen if test not in edited and any(test.is_relative_to(each) for each in SLOW)]
    return [test for test in chosen if test not in slow], slow


def _texts(pattern: str) -> dict[Path, str]:
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in ROOT.glob(pattern)}


def _run(seconds: float, *command: str) -> int | None:
    """Its exit code, or None where it was ended after `seconds`."""
    process = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest then closes what its fixtures opened
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def main() -> int:
    """Run the three; the first that fails ends it with its exit code."""
    end = time.monotonic() + SECONDS
    files = changed()
    chosen, slow = reached_by(files, _texts("tests/**/test_*.py"))
    sources = {path: text for name in PACKAGES for path, text in _texts(f"{name}/**/*.py").items()}
    names, types = [str(file) for file in files], [str(file) for file in typed(files, sources)]
    if slow:
        print(f"left to `make test`: {', '.join(map(str, slow))}")  # noqa: T201
    for command in (
        ["ruff", "check", *names] if names else [],
        ["ruff", "format", "--check", *names] if names else [],
        ["mypy", *types] if types else [],
        ["pytest", "-n", "0", "-x", "-m", "not slow", *map(str, chosen)],
    ):
        code = _run(max(end - time.monotonic(), 1.0), *command) if command else 0
        if code is None:
            print(f"{command[0]} did not end within {SECONDS:g} s: the rest is for `make check` and `make test`")  # noqa: T201
        elif code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
