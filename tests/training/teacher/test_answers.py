"""Candidate answers graded by a teacher that can only count letters."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from training.corpora import pairwise
from training.corpora.pairwise import CorpusParts
from training.pairs import Pair
from training.teacher.answers import teacher_answers


class Letters:
    """Encodes a text as its counts of a and b, the b negative when it says so."""

    name = "letters"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[text.count("a"), text.count("b") - 2 * text.count("-b")] for text in texts], np.float32)


PARTS = {
    "wikiqa": [Pair("a ?", f"{'a' * i}b .", 1.0, "1", f"q{i}") for i in range(6)],
    "trecqa": [Pair("b ?", "it is n't -b", 0.0, "0", "q"), Pair("b ?", "a", 0.0, "0", "q")],
}


@pytest.fixture(autouse=True)
def corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "read", lambda corpus: CorpusParts(tuple(PARTS[corpus]), (), {}))


def test_the_target_is_the_teachers_cosine_and_never_below_zero(tmp_path: Path) -> None:
    teacher = Letters()
    found = teacher_answers(teacher, ("wikiqa", "trecqa"), None, 0, tmp_path)
    graded = {(pair.b, pair.group): pair for pair in found}
    assert len(graded) == 8
    for i in range(6):
        pair = graded[PARTS["wikiqa"][i].b, f"q{i}"]
        assert pair.target == pytest.approx(i / np.hypot(i, 1), abs=1e-3)
        assert pair.label is None
    assert graded["it is n't -b", "q"].target == 0.0
    assert graded["a", "q"].target == 0.0
    assert "it isn't -b" in teacher.asked  # detokenised, as it was taught
