"""What `make quick` chooses to check and to run."""

from pathlib import Path

from scripts.quick import ALWAYS, ROOT, SLOW, reached_by

POOL = Path("service/engine/queue.py")
MIRROR = Path("tests/service/engine/test_queue.py")
TEXT = Path("tests/core/test_text.py")
IMPORTING = Path("tests/service/test_faults.py")
SLOWLY = Path("tests/dialects/test_tei.py")
TESTS = {Path(name): "" for name in ALWAYS} | {
    IMPORTING: "from service.engine import queue\n",
    MIRROR: "",
    SLOWLY: "from service.engine.queue import Queue\n",
    TEXT: "from core.text import words\n",
}


def test_a_module_is_tested_by_its_mirror_and_by_who_imports_it() -> None:
    assert reached_by([POOL], TESTS) == ([MIRROR, *map(Path, ALWAYS), IMPORTING], [SLOWLY])


def test_a_changed_test_is_run_however_slow_and_helpers_of_tests_are_not() -> None:
    assert reached_by([SLOWLY, TEXT, Path("tests/harness/toys.py")], TESTS) == ([SLOWLY, TEXT, *map(Path, ALWAYS)], [])


def test_what_is_slow_is_there() -> None:
    assert [name for name in (*SLOW, *ALWAYS) if not (ROOT / name).exists()] == []
