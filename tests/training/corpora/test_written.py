"""Texts written for this project: read whole, their parts apart, their labels such as the tasks want."""

from collections import Counter
from collections.abc import Callable

import pytest

from training.corpora.readers import written
from training.corpora.readers.written import PARTS, Part
from training.pairs import Pair

READERS = (written.edits, written.crossed_edits, written.entailment, written.answers, written.claims)


@pytest.mark.parametrize("read", READERS)
def test_no_part_has_a_text_of_another(read: Callable[[Part], list[Pair]]) -> None:
    groups = [{pair.a for pair in read(part)} for part in PARTS]
    assert all(groups)
    assert len(set().union(*groups)) == sum(map(len, groups))
    assert len(read("train")) > len(read("dev")) + len(read("test"))


def test_each_sentence_has_a_paraphrase_and_an_edit_of_each_kind() -> None:
    pairs = [pair for part in PARTS for pair in written.edits(part)]
    labels, kinds = Counter(pair.label for pair in pairs), Counter(pair.group for pair in pairs)
    assert labels["0"] == labels["1"] > 3500
    assert len(kinds) == 10
    assert max(kinds.values()) < 1.1 * min(kinds.values())
    assert all(pair.a != pair.b for pair in pairs)
    crossed = [pair for part in PARTS for pair in written.crossed_edits(part)]
    assert {(pair.a, pair.b, pair.label) for pair in crossed} == {
        (edit.b, paraphrase.b, "0") for paraphrase, edit in zip(pairs[::2], pairs[1::2], strict=True)
    }


@pytest.mark.parametrize("read", [written.entailment, written.claims])
def test_labels_of_entailment_and_claims_are_about_as_many_each(read: Callable[[Part], list[Pair]]) -> None:
    labels = Counter(pair.label for part in PARTS for pair in read(part))
    assert set(labels) == {"entailment", "neutral", "contradiction"}
    assert max(labels.values()) < 1.15 * min(labels.values())


@pytest.mark.parametrize("read", READERS)
def test_about_a_fifth_is_kept_back(read: Callable[[Part], list[Pair]]) -> None:
    train, dev, test = (len(read(part)) for part in PARTS)
    assert 0.15 < (dev + test) / (train + dev + test) < 0.35


def test_a_quarter_of_the_questions_has_no_answer() -> None:
    right: Counter[str] = Counter()
    for part in PARTS:
        for pair in written.answers(part):
            right[pair.group] += int(pair.label == "1")
    assert set(right.values()) == {0, 1}
    assert 0.2 < list(right.values()).count(0) / len(right) < 0.3


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="part"):
        written.edits("all")  # type: ignore[arg-type]
