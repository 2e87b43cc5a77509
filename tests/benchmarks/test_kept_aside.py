"""Two stages: which candidates the second one reads, and where the others end."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.kept_aside import DEPTH, two_stages


def test_the_second_stage_orders_the_best_of_each_question_and_leaves_the_rest_below() -> None:
    read: list[tuple[str, str]] = []

    def first(a: Sequence[str], b: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.array([float(each) for each in b])

    def second(a: Sequence[str], b: Sequence[str]) -> npt.NDArray[np.float64]:
        read.extend(zip(a, b, strict=True))
        return np.array([float(each == "5") for each in b])

    many = DEPTH + 3
    a = ["long"] * many + ["short", "short"]
    b = [str(i) for i in range(many)] + ["5", "7"]
    scores = two_stages(first, second)(a, b)
    assert sorted(read) == sorted([*(("long", str(i)) for i in range(3, many)), ("short", "5"), ("short", "7")])
    assert np.argsort(-scores[:many]).tolist() == [5, *(i for i in reversed(range(many)) if i != 5)]
    assert scores[many] == scores[many + 1]
