"""`make mutants`: faults of one line, put in one at a time; those that no test sees are printed.

Of each, the tests that reach its line run in a copy of the checkout until one fails. ARGS="--seed 3" draws others.

- Which tests reach a line is recorded by pytest-cov in one run of `TESTS`, without the slow ones of `scripts/quick.py`,
  and kept in build/mutants until code or tests change. What a fixture reaches counts for all tests of its file.
- Tests of files named after the module come first, all of them, for caches hide what is reached; then those of
  folders named as its own, then the quickest, for `SECONDS` by their recorded times. With a survivor the number left
  out is printed.
- Mutants are inside functions: numbers of a module are settings, chosen by measurement. There are none in texts,
  annotations, log lines, `assert`, `raise` and `strict=`.

A survivor gets a test, or its line goes, unless docs/decisions/0010-which-mutants-may-live.md names its kind.

Not mutmut 3: it knows tests by function, and forks a process in which ONNX Runtime has threads. Not cosmic-ray 8: it
runs one command for all mutants, which here would be every test for each.
"""

import argparse
import ast
import copy
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import accumulate, chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree

from coverage import CoverageData

from scripts.quick import ROOT, SLOW

PACKAGES = ("core", "service", "semblance", "training/objectives", "training/publishing", "training/families")
TESTS = (
    *("tests/core", "tests/service", "tests/client", "tests/dialects"),
    *("tests/training/objectives", "tests/training/publishing", "tests/training/families"),
)
SECONDS = 90.0  # of tests, for one mutant; most are killed by the first ones
ELSEWHERE = ("client/test_ends.py", "client/test_extras.py", "client/test_faq_page.py")  # in processes that they start
SECONDS_OF_A_FILE = 2.0  # more, for its fixtures
PATIENCE = 600.0  # seconds, and a tenth for one test, until a mutant is killed because they do not end
NOT_COPIED = {".git", ".mypy_cache", ".venv", ".venv-extras", ".venv-serve", "build", "data", "models", "runs"}
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0")
SWAPPED = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.Mod, ast.FloorDiv)),
)
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {a: b for pair in SWAPPED for a, b in (pair, pair[::-1])}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "floor": "ceil", "ceil": "floor"}
_SECONDS_LATER = count(2)


class Mutant(NamedTuple):
    """Another text for a part of a line."""

    path: str
    line: int  # from 1
    start: int  # bytes of the line
    end: int
    new: str

    def applied(self, text: str) -> tuple[str, str, str]:
        """The line before and after, and the whole file after."""
        lines = text.split("\n")
        old = lines[self.line - 1]
        lines[self.line - 1] = (old.encode()[: self.start] + self.new.encode() + old.encode()[self.end :]).decode()
        return old.strip(), lines[self.line - 1].strip(), "\n".join(lines)


def mutants_of(path: str, text: str) -> list[Mutant]:
    """All of a file."""

    def within(node: ast.AST) -> Iterator[Mutant]:
        skipped = ast.Assert | ast.Raise | ast.JoinedStr | ast.arguments
        if isinstance(node, skipped) or (isinstance(node, ast.Expr) and ast.unparse(node).startswith("log.")):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: an assertion
            return
        for old, new in _others(node):
            if old.lineno == old.end_lineno and old.end_col_offset is not None:
                yield Mutant(path, old.lineno, old.col_offset, old.end_col_offset, new)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    yield from within(child) if isinstance(child, ast.AST) else ()

    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {mutant for function in functions for mutant in within(function)}
    return [mutant for mutant in sorted(found) if mutant.applied(text)[0] != mutant.applied(text)[1]]


def _others(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What may be replaced, the node or a part of it, and by what."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) | ast.Compare(ops=[op]):
            changed, other = copy.copy(node), OPERATORS.get(type(op))
            if other is not None:
                vars(changed).update(op=other(), ops=[other()])  # a node has one of both
                yield node, ast.unparse(changed)
    match node:
        case ast.Compare(ops=[ast.In()], comparators=[right]):
            yield node, ast.unparse(right)
        case ast.BoolOp(values=[left, right]) | ast.IfExp(body=left, orelse=right):
            yield from ((node, ast.unparse(left)), (node, ast.unparse(right)))
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield node, ast.unparse(operand)
        case ast.Constant(value=bool() as value):
            yield node, str(not value)
        case ast.Constant(value=int() | float() as value):
            yield node, repr(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "pass"
        case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() as test):
            yield test, f"not {ast.unparse(test)}"
        case ast.Slice(upper=ast.expr() as upper):
            yield upper, "None"
        case ast.Call(func=ast.Name(id=name) as called) if name in NAMES:
            yield called, NAMES[name]
        case ast.Break() | ast.Continue():
            yield node, "continue" if isinstance(node, ast.Break) else "break"


class Recording:
    """Which tests of a checkout reach a line, and the seconds of each; only tests that pass."""

    def __init__(self, root: Path, folder: Path, packages: Sequence[str], *tests: str) -> None:
        """Run these tests, unless the folder has what the same ones gave of the same files.

        Raises:
            SystemExit: pytest did not run.
        """
        files = sorted(path for name in (*packages, "tests") for path in (root / name).rglob("*.py"))
        state = hashlib.sha256(b"\0".join([repr(tests).encode(), *(file.read_bytes() for file in files)]))
        here = folder / state.hexdigest()[:16]
        data, junit = here / "coverage", here / "junit.xml"
        if not junit.exists():
            shutil.rmtree(folder, ignore_errors=True)
            here.mkdir(parents=True)
            source = "".join(f"\n  {root / name}" for name in packages)
            (here / "config").write_text(f"[run]\nsource = {source}\ndata_file = {data}\n", encoding="utf-8")
            options = ("--cov", f"--cov-config={here / 'config'}", "--cov-context=test", "--cov-report=")
            command = [*PYTEST, *options, f"--junitxml={junit}", "-o", "junit_family=xunit1", *tests]
            if subprocess.run(command, cwd=root, env=_environment(root), check=False).returncode not in (0, 1):
                raise SystemExit("pytest did not run")
        self._root = root
        self._data = CoverageData(str(data))
        self._data.read()
        self._seconds: dict[str, float] = {}
        self._of_file: dict[str, set[str]] = defaultdict(set)
        for case in ElementTree.parse(junit).iter("testcase"):
            file, test = str(case.get("file")), f"{case.get('file')}::{case.get('name')}"
            if not len(case):  # neither failed nor skipped
                self._seconds[test] = float(case.get("time", "0"))
                self._of_file[file].add(test)
        self._lines: dict[str, dict[int, set[str]]] = {}

    def tests(self, path: str) -> dict[int, set[str]]:
        """The tests of each line of a file that any reaches."""
        if path not in self._lines:
            found: dict[int, set[str]] = defaultdict(set)
            for line, contexts in self._data.contexts_by_lineno(str(self._root / path)).items():
                for test, _, phase in (context.rpartition("|") for context in contexts if context):
                    of_file = self._of_file[test.split("::")[0]]
                    found[line] |= {test} & of_file if phase == "run" else of_file
            self._lines[path] = {line: tests for line, tests in found.items() if tests}
        return self._lines[path]

    def chosen(self, mutant: Mutant) -> tuple[list[str], int]:
        """The tests to run, and how many more reach the line."""
        path, line = Path(mutant.path), self.tests(mutant.path)[mutant.line]
        named = {test for file, tests in self._of_file.items() if path.stem in Path(file).stem for test in tests}
        far = {test for test in line - named if Path(test.split("::")[0]).parent.name != path.parent.name}
        order = sorted(line | named, key=lambda test: (test not in named, test in far, self._seconds[test], test))
        first = {test.split("::")[0]: test for test in reversed(order)}
        ends = accumulate(self._seconds[x] + SECONDS_OF_A_FILE * (x in first.values()) for x in order)
        most = max(1, sum(end <= SECONDS for end in ends))
        return order[:most], len(order) - most


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))}


def _is_killed(at: Path, mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether one of these tests fails with the mutant, or does not end."""
    path, listed = at / mutant.path, at / "chosen-tests"
    text, before = path.read_text(encoding="utf-8"), path.stat().st_mtime
    path.write_text(mutant.applied(text)[2], encoding="utf-8")
    os.utime(path, (before, before + next(_SECONDS_LATER)))  # by which Python knows whose compiled file lies there
    listed.write_text("\n".join(tests), encoding="utf-8")
    command = [*PYTEST, "-x", "-qq", f"--timeout={PATIENCE / 10}", f"@{listed}"]
    # Nor errors: of a file that cannot be imported with the mutant pytest says that its tests are not there.
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=at, env=_environment(at), start_new_session=True, stdout=null, stderr=null)
    try:
        return process.wait(PATIENCE) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what tests started, too
        process.wait()
        path.write_text(text, encoding="utf-8")
        os.utime(path, (before, before))


def run(root: Path, packages: Sequence[str], recording: Recording, number: int, seed: int, at_once: int) -> list[str]:
    """Print the survivors of a sample of so many, and return them."""
    files = sorted(path for name in packages for path in (root / name).rglob("*.py"))
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    every = [mutant for path, text in texts.items() for mutant in mutants_of(path, text)]
    reached = [mutant for mutant in every if mutant.line in recording.tests(mutant.path)]
    drawn = random.Random(seed).sample(reached, min(number, len(reached)))
    print(f"{len(drawn)} of {len(reached)} mutants; {len(every) - len(reached)} more are on lines that no test reaches")

    def survivors(first: int) -> list[str]:
        found = []
        with TemporaryDirectory() as folder:
            at = Path(folder) / "copy"
            shutil.copytree(root, at, ignore=lambda of, names: NOT_COPIED & set(names) if Path(of) == root else ())
            (at / "models").symlink_to(root / "models")
            for mutant in drawn[first::at_once]:
                tests, left = recording.chosen(mutant)
                if not _is_killed(at, mutant, tests):
                    old, new, _ = mutant.applied(texts[mutant.path])
                    found.append(f"{mutant.path}:{mutant.line} {old} -> {new} ({left} tests left out)")
                    print(found[-1], flush=True)
        return found

    with ThreadPoolExecutor(at_once) as pool:
        found = list(chain.from_iterable(pool.map(survivors, range(at_once))))
    print(f"{len(drawn) - len(found)} of {len(drawn)} killed")
    return found


def main() -> int:
    """Print the survivors of a sample; 1 if more than a tenth survives."""
    parser = argparse.ArgumentParser(prog="make mutants")
    for name, usual in (("seed", 1), ("count", 60), ("at-once", 2)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    wanted = parser.parse_args()
    left = [f"--ignore={name}" for name in (*SLOW, *(f"tests/{name}" for name in ELSEWHERE)) if name not in TESTS]
    parts = ("-m", "not slow", "-n", "2", "--dist", "loadfile")
    recording = Recording(ROOT, ROOT / "build" / "mutants", PACKAGES, *TESTS, *left, *parts)
    found = run(ROOT, PACKAGES, recording, wanted.count, wanted.seed, wanted.at_once)
    return int(len(found) > 0.1 * wanted.count)


if __name__ == "__main__":
    sys.exit(main())
