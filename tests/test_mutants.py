"""`make mutants` on a package of ten lines: which mutants there are, which tests run, and which mutants survive."""

from pathlib import Path

import pytest

from scripts import mutants
from scripts.mutants import Mutant, Recording, mutants_of, run

CODE = '''"""Marks."""

PASSED = 50


def passes(mark: int | None, most: int = 100) -> bool:
    """Whether a mark is enough."""
    assert mark is None or mark >= 0, f"{mark + 1} is no mark"
    return mark is not None and mark >= PASSED


def best(marks: list[int]) -> int:
    return max(marks)


def unused(marks: list[int]) -> None:
    marks.sort()
'''
TESTS = """
import pytest
from toy.marks import best, passes

@pytest.fixture(scope="module")
def highest():
    return best([10, 50, 20])

@pytest.mark.parametrize(("mark", "expected"), [(51, True), (20, False), (None, False)])
def test_passes(mark, expected):
    assert passes(mark) is expected

def test_who_comes_first(highest):
    assert highest > 5

def test_who_comes_second_sees_the_mistake(highest):
    assert highest == 50

def test_that_fails_kills_nothing():
    assert not passes(50)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others take longer than these tests
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p pytest_cov.plugin -p pytest_timeout -p xdist.plugin\n")
    for name, text in (("toy/__init__.py", ""), ("toy/marks.py", CODE), ("tests/test_marks.py", TESTS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_changed_stands_in_functions_and_does_something() -> None:
    text = CODE.replace("    marks.sort()\n", '    if marks:\n        log.info("%s", 1 + 2)\n    marks.sort(key=str)\n')
    found = [mutant.applied(text)[:2] for mutant in mutants_of("toy/marks.py", text)]
    passes = "return mark is not None and mark >= PASSED"
    assert sorted(found) == sorted(
        [
            (passes, passes.replace("is not None", "is None")),
            (passes, passes.replace("and", "or")),
            (passes, passes.replace("mark is not None and ", "")),
            (passes, passes.replace(" and mark >= PASSED", "")),
            (passes, passes.replace(">=", ">")),
            ("return max(marks)", "return min(marks)"),
            ("if marks:", "if not marks:"),
            ("marks.sort(key=str)", "pass"),
        ]
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return a < b <= c", {"return a < b <= c"}),  # two comparisons: as they are
        ("return a in b", {"return a not in b", "return b"}),
        ("return not a", {"return a"}),
        ("return -a[:1]", {"return a[:1]", "return -a[:None]", "return -a[:2]"}),
        ("a += 0.5 * True", {"a -= 0.5 * True", "a += 0.5 / True", "a += 1.5 * True", "a += 0.5 * False"}),
        ("while sorted(a): break", {"while list(a): break", "while sorted(a): continue"}),
        ('b("é", 1)', {"pass", 'b("é", 2)'}),
        ("b(a\n    )", set()),
    ],
)
def test_what_stands_in_its_place(line: str, expected: set[str]) -> None:
    text = f"def function(a, b=1):\n    {line}\n"
    found = mutants_of("x.py", text)
    assert {mutant.applied(text)[1] for mutant in found} == expected - {line}
    for mutant in found:
        compile(mutant.applied(text)[2], "x.py", "exec")


def test_survivors_are_those_that_no_passing_test_sees(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ("tests", "-n", "2", "--dist", "loadfile")
    recording = Recording(root, root / "build", ["toy"], *options)
    lines = {line: {test.split("::")[1] for test in tests} for line, tests in recording.tests("toy/marks.py").items()}
    own = {"test_passes[51-True]", "test_passes[20-False]", "test_passes[None-False]"}
    at = {text: number for number, text in enumerate(CODE.splitlines(), start=1)}
    # Of the fixture it is not known who needs it: all of its file.
    both = {"test_who_comes_first", "test_who_comes_second_sees_the_mistake"}
    assert lines[at["    return max(marks)"]] == own | both
    assert lines[at["    return mark is not None and mark >= PASSED"]] == own
    assert at["    marks.sort()"] not in lines

    capfd.readouterr()
    (survivor,) = run(root, ["toy"], recording, 100, 1, 2)
    assert survivor.startswith("toy/marks.py:9 ")
    assert survivor.endswith("-> return mark is not None and mark > PASSED (0 tests left out)")
    out = capfd.readouterr().out
    assert "6 of 6 mutants; 1 more are on lines that no test reaches\n" in out
    assert out.endswith(f"{survivor}\n5 of 6 killed\n")
    assert (root / "toy" / "marks.py").read_text() == CODE

    again = Recording(root, root / "build", ["toy"], *options)
    assert "passed" not in capfd.readouterr().out  # as recorded
    assert set(run(root, ["toy"], again, 1, 3, 1)) <= {survivor}


def test_the_nearest_and_the_quickest_tests_run_while_there_is_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "tests" / "toy").mkdir()
    for name in ("test_a.py", "toy/test_b.py"):
        (root / "tests" / name).write_text(
            "from toy.marks import best\n\ndef test_1():\n    best([1])\n\ndef test_2():\n    best([2])\n"
        )
    (mutant,) = (mutant for mutant in mutants_of("toy/marks.py", CODE) if mutant.new == "min")
    recording = Recording(root, root / "build", ["toy"], "tests")
    nearer = {"toy/test_b.py::test_2": 1.0, "toy/test_b.py::test_1": 3.0}
    seconds = nearer | {"test_a.py::test_1": 2.0, "test_a.py::test_2": 4.0}
    recording._seconds = {test: seconds.get(test.removeprefix("tests/"), 5.0) for test in recording._seconds}
    monkeypatch.setattr(mutants, "SECONDS_OF_A_FILE", 10.0)
    monkeypatch.setattr(mutants, "SECONDS", 1000.0)
    tests, left = recording.chosen(mutant)
    near, others = tests[:-4], [test.removeprefix("tests/") for test in tests[-4:]]
    assert {test.split("::")[0] for test in near} == {"tests/test_marks.py"}
    assert others == list(seconds)
    assert (len(near), left) == (5, 0)
    for most, number in ((0.0, 1), (15.0, 1), (35.0, 5), (46.0, 6), (48.9, 6), (49.0, 7), (60.9, 7), (61.0, 8)):
        monkeypatch.setattr(mutants, "SECONDS", most)
        assert recording.chosen(mutant) == (tests[:number], 9 - number)
    other = next(mutant for mutant in mutants_of("toy/marks.py", CODE) if mutant.line == 9)
    monkeypatch.setattr(mutants, "SECONDS", 1000.0)
    assert set(recording.chosen(other)[0]) == set(near)  # all of the file that is named after the module


def test_a_mutant_with_which_tests_do_not_end_is_killed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "PATIENCE", 0.0)
    mutant = Mutant("toy/marks.py", 13, 4, 21, "while True: pass")
    assert mutants._is_killed(root, mutant, ["tests/test_marks.py::test_who_comes_first"])
    assert (root / "toy" / "marks.py").read_text() == CODE
