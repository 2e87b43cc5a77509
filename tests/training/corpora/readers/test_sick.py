import pytest

from training.corpora import catalogue
from training.corpora.catalogue import Published
from training.corpora.files import CorpusError
from training.corpora.readers import sick
from training.pairs import Pair

ROWS = (
    ("7", "A cat sleeps", "The cat is awake", "3.4", "CONTRADICTION"),
    ("9", "A cat sleeps", "An animal sleeps", "4.5", "ENTAILMENT"),
)


def test_both_tasks_come_from_one_row(write):
    write("sick/SICK_trial.txt", sick.HEADER, *ROWS)
    assert sick.read("dev") == [
        Pair("A cat sleeps", "The cat is awake", 3.4, "contradiction", "7"),
        Pair("A cat sleeps", "An animal sleeps", 4.5, "entailment", "9"),
    ]


def test_relatedness_below_one_is_refused(write):
    write("sick/SICK_train.txt", sick.HEADER, ROWS[0], ("8", "A", "B", "0.5", "NEUTRAL"))
    with pytest.raises(CorpusError, match=r"SICK_train\.txt, line 3: expected a number from 1 to 5 .* got '0\.5'"):
        sick.read("train")


def test_published_label_counts_are_checked(write, monkeypatch):
    expected = Published(2, {"neutral": 1, "entailment": 1})
    monkeypatch.setattr(catalogue, "PUBLISHED", {"sick/SICK_train.txt": expected})
    write("sick/SICK_train.txt", sick.HEADER, *ROWS)
    with pytest.raises(CorpusError) as caught:
        sick.read("train")
    assert str(caught.value) == (
        "sick/SICK_train.txt: expected labels entailment 1, neutral 1, got contradiction 1, entailment 1"
    )
