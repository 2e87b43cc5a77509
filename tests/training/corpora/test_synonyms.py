"""Augmentation with synonyms; the thesaurus is ours."""

from pathlib import Path

import pytest

from training.corpora.synonyms import FILES, WordNetMissing, augment, open_wordnet, wordnet_folder
from training.pairs import Pair

PAIRS = [
    Pair("A man plays.", "The big dog sleeps", 3.5, "neutral", "7"),
    Pair("a dog runs", "a man and a big dog run", 2.0, "contradiction", "8"),
]
BOOK = {"man": ("fellow", "chap"), "dog": ("hound",), "big": ("large", "great", "huge")}


def thesaurus(word: str) -> tuple[str, ...]:
    return BOOK.get(word, ())


def test_copies_differ_only_by_synonyms_and_keep_their_labels() -> None:
    made = augment(PAIRS, 12, 0, thesaurus)
    assert len(made) == 12
    assert len({(p.a, p.b) for p in made}) == 12
    allowed = {"7": ("a man plays .", "the big dog sleeps"), "8": ("a dog runs", "a man and a big dog run")}
    for pair in made:
        (original,) = [p for p in PAIRS if p.group == pair.group]
        assert (pair.target, pair.label) == (original.target, original.label)
        sides = list(zip(allowed[pair.group], (pair.a, pair.b), strict=True))
        assert any(before != after for before, after in sides)
        for before, after in sides:
            for old, new in zip(before.split(), after.split(), strict=True):
                assert new == old or new in BOOK[old]


def test_too_many_copies_are_refused() -> None:
    with pytest.raises(ValueError, match="1 pairs gave 2 variants with synonyms, 5 were asked for"):
        augment([Pair("a man", "a cat", 1.0)], 5, 0, thesaurus)


def test_a_missing_wordnet_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_WORDNET", str(tmp_path))
    with pytest.raises(WordNetMissing, match=r"index\.adj is missing.*package wordnet-base.*SEMBLANCE_WORDNET"):
        open_wordnet(wordnet_folder())
    monkeypatch.delenv("SEMBLANCE_WORDNET")
    assert wordnet_folder() == Path("/usr/share/wordnet")


@pytest.mark.skipif(not (wordnet_folder() / FILES[0]).is_file(), reason="no WordNet: apt-get install wordnet-base")
def test_synonyms_come_from_wordnet_sense_by_sense() -> None:
    synonyms = open_wordnet(wordnet_folder())
    assert synonyms("auto")[0] == "car"  # before "automobile"
    assert all(word.isalpha() for word in synonyms("dog"))  # no phrase
    assert synonyms("dogs") == ()  # a word with an ending
    assert synonyms("no") == ()  # a function word
