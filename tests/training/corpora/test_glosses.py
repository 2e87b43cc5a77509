"""WordNet's definitions and examples as unlabelled sentences; the dictionary here is made up."""

from pathlib import Path

import pytest

from training.corpora import glosses as module
from training.corpora.glosses import glosses
from training.corpora.synonyms import FILES

LINES = (
    "  1 this line stands for the licence at the top\n",
    '00001740 03 n 01 hut 0 000 | a small plain house; "they slept in a hut near the lake"  \n',
    "00001930 03 n 01 lake 0 000 | water with land all around it  \n",
    "00002137 03 n 01 pond 0 000 | Water, with land all around it!  \n",
    "00002452 03 n 01 tiny 0 000 | too short  \n",
)


@pytest.fixture
def dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "evaluation_sentences", lambda: frozenset({"a verb of going"}))
    for name in FILES:
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "data.noun").write_text("".join(LINES), encoding="utf-8")
    (tmp_path / "data.verb").write_text("00003000 29 v 01 go 0 000 | a verb of going; to walk  \n", encoding="utf-8")
    (tmp_path / "data.adv").write_text(
        '00004000 02 r 01 so 0 000 | a verb of going; "A verb of going"\n', encoding="utf-8"
    )
    return tmp_path


def test_definitions_and_examples_each_once_and_without_evaluation_sentences(dictionary: Path) -> None:
    found = glosses(dictionary, 100, seed=0)
    assert sorted(found) == [
        "a small plain house",
        "a verb of going; to walk",
        "they slept in a hut near the lake",
        "water with land all around it",
    ]
