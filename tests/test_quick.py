"""What `make quick` chooses to run."""

from pathlib import Path

from scripts.quick import ALWAYS, reached_by

MIRROR = Path("tests/service/compute/test_lru.py")
TESTS = {
    MIRROR: "",
    Path("tests/service/test_faults.py"): "from service.compute import lru\n",
    Path("tests/client/test_client.py"): "from service.compute.lru import LRU\n",
    Path("tests/contract/test_text.py"): "from contract.text import words\n",
} | {Path(name): "" for name in ALWAYS}


def test_a_module_is_tested_by_its_mirror_and_by_who_imports_it() -> None:
    chosen = set(reached_by([Path("service/compute/lru.py")], TESTS))
    assert chosen == TESTS.keys() - {Path("tests/contract/test_text.py")}


def test_a_changed_test_is_run_and_helpers_of_tests_are_not() -> None:
    text = Path("tests/contract/test_text.py")
    chosen = reached_by([text, Path("tests/toys.py")], TESTS)
    assert set(chosen) == {text, *map(Path, ALWAYS)}
