"""The pairs of several tasks: of a corpus as many as a recipe draws, groups of answers never torn."""

from pathlib import Path

import pytest

from training.corpora.hard import GROUP
from training.pairs import Pair
from training.sources import tasks as source
from training.sources.tasks import TaskPairs

FOLDER = Path()
PAIRS = [Pair(f"text {i}", f"other {i}", label="1") for i in range(40)]
GROUPS = [Pair(f"question {i // GROUP}", f"answer {i}", label=str(int(i % GROUP == 0))) for i in range(40)]


@pytest.fixture(autouse=True)
def corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two corpora, one of questions with hard answers; no encoder is asked for what is given."""
    monkeypatch.setattr(source.tasks, "read", lambda name: PAIRS)
    monkeypatch.setattr(source, "hard_groups", lambda pairs, encode: GROUPS)
    monkeypatch.setattr(source, "Teacher", lambda folder: None)


def test_a_corpus_is_whole_where_no_number_is_given() -> None:
    found = TaskPairs(("msrp", "paws-wiki"), drawn={"msrp": 50}).train(FOLDER, FOLDER)
    assert found["msrp"] == found["paws-wiki"] == PAIRS


def test_so_many_pairs_are_drawn_the_same_each_time() -> None:
    data = TaskPairs(("msrp",), drawn={"msrp": 7})
    found = data.train(FOLDER, FOLDER)["msrp"]
    assert len(set(found)) == 7
    assert set(found) < set(PAIRS)
    assert found == data.train(FOLDER, FOLDER)["msrp"]
    assert found != TaskPairs(("msrp",), drawn={"msrp": 7}, seed=1).train(FOLDER, FOLDER)["msrp"]


def test_answers_of_a_question_are_drawn_together() -> None:
    found = TaskPairs(("wikiqa-hard",), drawn={"wikiqa-hard": 3 * GROUP + 1}).train(FOLDER, FOLDER)["wikiqa-hard"]
    assert len(found) == 3 * GROUP
    for start in range(0, len(found), GROUP):
        group = found[start : start + GROUP]
        assert len({pair.a for pair in group}) == 1
        assert [pair.label for pair in group] == ["1", "0", "0", "0", "0"]
