"""Pairs that are made of texts, by rules, with an encoder or by hand, and definitions that are texts."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from training.data import glosses as module
from training.data.edits import edits
from training.data.glosses import glosses
from training.data.hard import GROUP, hard_groups, near_intents
from training.data.pairs import Pair
from training.data.readers import written
from training.data.readers.written import PARTS, Part
from training.data.synonyms import augment, open_thesaurus
from training.data.wordnet import FILES, WordNetMissing, definition_pairs, wordnet_folder


def changed(*sentences: str) -> dict[str, str]:
    """The other text of each pair -> its label."""
    return {(pair.b if pair.a in sentences else pair.a): pair.label or "" for pair in edits("role-edits", sentences)}


def test_an_active_sentence_gives_its_passive_and_two_swaps() -> None:
    assert changed("A dog is chasing two cats.") == {
        "Two cats are being chased by a dog.": "1",
        "Two cats are chasing a dog.": "0",
        "A dog is being chased by two cats.": "0",
    }


def test_the_forms_of_verbs_and_the_place() -> None:
    rewrites = {text for text, label in changed("The men are carrying a boat on the beach").items() if label == "1"}
    assert rewrites == {"A boat is being carried by the men on the beach."}
    assert "A child is being hugged by a woman." in changed("A woman is hugging a child")
    assert "A horse is being ridden by a girl." in changed("A girl is riding a horse.")
    assert changed("A boy is sleeping on the bus.") == {"On the bus, a boy is sleeping.": "1"}


def others(sentence: str, label: str = "1", draws: int = 60) -> set[str]:
    """What the sentence is paired with over many draws."""
    pairs = list(edits("surface-edits", [sentence] * draws))
    return {pair.b if pair.a == sentence else pair.a for pair in pairs if pair.label == label}


def test_a_sentence_is_paired_with_itself_and_with_other_capitals_and_marks() -> None:
    found = others("Is it far, Ann?")
    assert {"Is it far, Ann?", "is it far, ann?"} <= found
    assert found & {"Is it far, Ann", "Is it far Ann"}


@pytest.mark.parametrize(
    ("sentence", "other"),
    [
        ("The shop is not open.", "The shop isn't open."),
        ("Don't go.", "Do not go."),
        ("We can't.", "We cannot."),
        ("What is new?", "What's new?"),
    ],
)
def test_contractions_are_written_out_and_the_other_way_round(sentence: str, other: str) -> None:
    assert other in others(sentence)


def test_a_typing_error_is_in_one_word() -> None:
    sentence = "A woman is painting"
    typed = others(sentence) - {sentence, sentence.lower()}
    assert typed
    for text in typed:
        assert re.fullmatch(r"A (\w+) is (\w+)", text)
        assert ("woman" in text) != ("painting" in text)
        assert sorted(set(text)) == sorted(set(sentence)) or len(text) == len(sentence) - 1


def test_another_number_says_something_else() -> None:
    found = others("The 12 rooms cost 90 euros", label="0")
    assert found
    for text in found:
        assert re.fullmatch(r"The \d+ rooms cost \d+ euros", text)
        assert ("12" in text.split()) != ("90" in text.split())
    assert others("No rooms are left", label="0") == set()


def made(text: str) -> dict[str, set[str]]:
    """All texts that some seeds make of one, by label."""
    found: dict[str, set[str]] = {"0": set(), "1": set()}
    for seed in range(60):
        for pair in edits("request-edits", [text], seed):
            assert pair.label in ("0", "1")
            (other,) = {pair.a, pair.b} - {text}
            found[pair.label].add(other)
    return found


def test_a_word_of_its_own_side_says_the_same_and_one_of_the_other_side_does_not() -> None:
    found = made("Please raise our rate limit.")
    assert "Please lower our rate limit." in found["0"]
    assert "Can you increase our rate limit?" in found["1"]
    for text in found["0"]:
        assert any(word in text for word in ("lower", "reduce", "decrease"))
    for text in found["1"]:
        assert not any(word in text for word in ("lower", "reduce", "decrease"))
    assert any(not text.startswith("Please") for text in found["0"])  # the frame says nothing about the label
    assert "is there a train from rome to milan" in made("is there a train from milan to rome")["0"]


def test_frames_and_nouns_say_the_same() -> None:
    found = made("How do I cancel my order?")
    assert found["0"] == set()
    assert "What is the way to cancel my order?" in found["1"]
    assert any("cancellation of my order" in text for text in found["1"])
    assert made("the weather was fine") == {"0": set(), "1": set()}


ANGLES = {"q": 0, "right": 20, "w10": 10, "w40": 40, "w50": 50, "w60": 60, "w70": 70, "o21": 21, "o30": 30, "o80": 80}


def encode(texts: Sequence[str]) -> np.ndarray:
    """Texts on a circle: the nearer the angle, the higher the cosine."""
    angles = np.radians([ANGLES.get(text, 90) for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def answered(*texts: str) -> list[Pair]:
    return [Pair("q", text, label=str(int(text == "right")), group="g") for text in texts]


def test_the_hardest_wrong_answers_of_the_question_come_first() -> None:
    pairs = answered("w70", "w40", "right", "w10", "w60", "w50")
    assert [(p.b, p.label, p.group) for p in hard_groups(pairs, encode)] == [
        ("right", "1", "g"),
        *((f"w{angle}", "0", "g") for angle in (10, 40, 50, 60)),
    ]


def test_other_questions_answers_fill_a_group_unless_they_are_as_near_as_the_right_one() -> None:
    others = [Pair("another", text, label="0", group="h") for text in ("o80", "o21", "o30", "w60")]
    found = hard_groups([*answered("right", "w70"), *others], encode)
    assert [p.b for p in found] == ["right", "w70", "o30", "w60", "o80"]  # o21: a cosine over .95 of the right one's
    assert {p.a for p in found} == {"q"}
    assert len(found) == GROUP
    assert hard_groups(answered("right", "w70"), encode) == []  # too few wrong ones
    twice = [*answered("right", "w40", "w50", "w60", "w70"), Pair("q", "o30", label="1", group="g")]
    assert [p.b for p in hard_groups(twice, encode)[::GROUP]] == ["right", "o30"]


def test_requests_have_one_of_their_intent_and_one_of_a_near_one() -> None:
    texts = [("right", "a"), ("w10", "a"), ("o21", "b"), ("o30", "b"), ("w70", "alone")]
    pairs = near_intents(texts, encode)
    of = dict(texts)
    assert len(pairs) == 2 * len(texts) - 1
    for pair in pairs:
        assert (pair.label == "1") == (of[pair.a] == of[pair.b])
        assert pair.a != pair.b
    assert pairs == near_intents(texts, encode)


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
    with pytest.raises(ValueError, match="1 pairs gave 2 variants with synonyms, 5 were asked for"):
        augment([Pair("a man", "a cat", 1.0)], 5, 0, thesaurus)


def test_a_missing_wordnet_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_WORDNET", str(tmp_path))
    with pytest.raises(WordNetMissing, match=r"index\.adj is missing.*package wordnet-base.*SEMBLANCE_WORDNET"):
        open_thesaurus(wordnet_folder())
    monkeypatch.delenv("SEMBLANCE_WORDNET")
    assert wordnet_folder() == Path("/usr/share/wordnet")


@pytest.mark.skipif(not (wordnet_folder() / FILES[0]).is_file(), reason="no WordNet: apt-get install wordnet-base")
def test_synonyms_come_from_wordnet_sense_by_sense() -> None:
    synonyms = open_thesaurus(wordnet_folder())
    assert synonyms("auto")[0] == "car"  # before "automobile"
    assert all(word.isalpha() for word in synonyms("dog"))  # no phrase
    assert synonyms("dogs") == ()  # a word with an ending
    assert synonyms("no") == ()  # a function word


LINES = (
    "  1 this line stands for the licence at the top\n",
    '00001740 03 n 01 hut 0 000 | a small plain house; "they slept in a hut near the lake"  \n',
    "00001930 03 n 01 lake 0 000 | water with land all around it  \n",
    "00002137 03 n 01 pond 0 000 | Water, with land all around it!  \n",
    "00002452 03 n 01 tiny 0 000 | too short  \n",
)


def test_definitions_and_examples_each_once_and_without_evaluation_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "evaluation_sentences", lambda: frozenset({"a verb of going"}))
    content = {
        "data.noun": "".join(LINES),
        "data.verb": "00003000 29 v 01 go 0 000 | a verb of going; to walk  \n",
        "data.adv": '00004000 02 r 01 so 0 000 | a verb of going; "A verb of going"\n',
    }
    for name in FILES:
        (tmp_path / name).write_text(content.get(name, ""), encoding="utf-8")
    found = glosses(tmp_path, 100, seed=0)
    assert sorted(found) == [
        "a small plain house",
        "a verb of going; to walk",
        "they slept in a hut near the lake",
        "water with land all around it",
    ]


READERS = (
    written.edits,
    written.crossed_edits,
    written.rewordings,
    written.entailment,
    written.answers,
    written.claims,
    written.near_claims,
)


@pytest.mark.parametrize("read", READERS)
def test_no_part_has_a_text_of_another_and_enough_is_kept_back(read: Callable[[Part], list[Pair]]) -> None:
    groups = [{pair.a for pair in read(part)} for part in PARTS]
    assert all(groups[:3])  # the fresh part has no edits
    assert len(set().union(*groups)) == sum(map(len, groups))
    train, dev, test = (len(read(part)) for part in PARTS[:3])
    assert min(dev, test) > 100
    assert dev + test < 0.35 * train


class Sense:
    """A meaning, as nltk's reader gives it."""

    def __init__(self, name: str, definition: str) -> None:
        self._name, self._definition = name, definition
        self.derived: list[Sense] = []
        self.similar: list[Sense] = []

    def name(self) -> str:
        return self._name

    def pos(self) -> str:
        return self._name.split(".")[1]

    def definition(self) -> str:
        return self._definition

    def lemmas(self) -> "list[Sense]":
        return [self]

    def synset(self) -> "Sense":
        return self

    def derivationally_related_forms(self) -> "list[Sense]":
        return self.derived

    def similar_tos(self) -> "list[Sense]":
        return self.similar


def test_definitions_of_derived_and_similar_words_are_paired_once_and_without_their_quotations() -> None:
    climb = Sense("climb.v.01", "reach the highest point; attain maximum intensity")
    ascent = Sense("climb.n.01", "the act of climbing; done on mountains; ; - Shakespeare")
    tall = Sense("tall.a.01", "great in height;")
    towering = Sense("towering.s.01", "of imposing height")
    climb.derived, ascent.derived = [ascent, climb], [climb]
    tall.similar, towering.similar = [towering], [tall]
    dictionary = SimpleNamespace(all_synsets=lambda: [climb, ascent, tall, towering])
    assert [(pair.a, pair.b) for pair in definition_pairs(dictionary)] == [
        ("reach the highest point", "attain maximum intensity"),
        ("reach the highest point; attain maximum intensity", "the act of climbing; done on mountains"),
        ("great in height", "of imposing height"),
    ]
