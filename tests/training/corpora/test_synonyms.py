"""Augmentation with synonyms; the thesaurus is ours, and so is the WordNet of five words."""

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


def small_wordnet(folder: Path) -> None:
    """Two nouns' meanings and one adjective's, in WordNet's own format; offsets are those of the lines."""
    for name in FILES:
        (folder / name).write_text("")
    for part in ("adj", "adv", "noun", "verb"):
        (folder / f"{part}.exc").write_text("")
    for name in ("cntlist.rev", "index.sense"):
        (folder / name).write_text("")

    def synset(offset: int, kind: str, words: list[str]) -> str:
        listed = " ".join(f"{word} 0" for word in words)
        return f"{offset:08d} 05 {kind} {len(words):02x} {listed} 000 | a gloss\n"

    first = synset(0, "n", ["dog", "domestic_dog", "Hound"])
    second = synset(len(first), "n", ["dog", "cad"])
    (folder / "data.noun").write_text(first + second)
    (folder / "data.adj").write_text(synset(0, "a", ["no", "nix"]))
    both = f"2 0 2 0 {0:08d} {len(first):08d}"
    one = f"1 0 1 0 {0:08d}"
    other = f"1 0 1 0 {len(first):08d}"
    index = [f"cad n {other}", f"dog n {both}", f"domestic_dog n {one}", f"hound n {one}"]
    (folder / "index.noun").write_text("".join(f"{line}  \n" for line in index))
    (folder / "index.adj").write_text(f"nix a {one}  \nno a {one}  \n")
    (folder / "noun.exc").write_text("dogges dog\n")


def test_synonyms_come_from_wordnet_sense_by_sense(tmp_path: Path) -> None:
    small_wordnet(tmp_path)
    synonyms = open_wordnet(tmp_path)
    assert synonyms("dog") == ("hound", "cad")  # no phrase
    assert synonyms("cad") == ("dog",)
    assert synonyms("dogges") == synonyms("dogs") == ()  # a word with an ending
    assert synonyms("cat") == ()
    assert synonyms("no") == ()  # a function word
