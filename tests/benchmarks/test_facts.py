"""The cases that facts were mended by, and the benchmark that says how many are right."""

from benchmarks.facts.__main__ import cases


def test_of_the_cases_of_development_19_of_20_are_right() -> None:
    right = [case.right for case in cases("development")]
    assert len(right) > 200
    assert sum(right) >= 0.95 * len(right)
