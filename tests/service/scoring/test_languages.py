"""Telling a text in another language from an English one, on the sentences in `language/`, written for this."""

import re
from itertools import pairwise

import pytest

from service.scoring.common_words import ENGLISH, OFTEN_IN_ENGLISH, OTHERS
from service.scoring.reading import KNOWN, LanguageHints, language_of
from tests.harness.languages import ENGLISH_TEXTS, OTHER, SENTENCES

HELD_OUT = [line.split("\t") for line in (SENTENCES / "held_out.tsv").read_text(encoding="utf-8").splitlines()]
IN_ENGLISH = LanguageHints(["en"])


def hinted(texts: list[str]) -> list[str]:
    """Those of the texts that an English model gets a hint on."""
    return [texts[i] for i, _ in IN_ENGLISH.on(texts)]


def test_the_sets_are_what_the_figures_are_said_of() -> None:
    assert {language for language, _ in OTHER} == {language for language, _ in HELD_OUT} == set(OTHERS)
    assert min(sum(each == language for each, _ in OTHER) for language in OTHERS) >= 33
    assert len(ENGLISH_TEXTS) == len(set(ENGLISH_TEXTS)) >= 200
    assert not {text for _, text in OTHER} & {text for _, text in HELD_OUT}


@pytest.mark.parametrize(
    ("pairs", "flagged", "right"), [(OTHER, 192, 188), (HELD_OUT, 59, 58)], ids=["written first", "held out"]
)
def test_nine_of_ten_sentences_in_six_other_languages_are_flagged(
    pairs: list[list[str]], flagged: int, right: int
) -> None:
    """Of 199 and of 60: as many as the table of words and its weights were published with."""
    assert len(hinted([text for _, text in pairs])) == flagged
    assert sum(language_of(text) == language for language, text in pairs) == right


UNKNOWN = "xa xb xc xd xe xf xg xh xi xj xk xl xm xn xo"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("wie xa xb", "de"), ("wie xa", None), ("' ' wie xa", None), ("' ' wie xa xb", "de"),  # three words
        (f"wie {UNKNOWN[:-3]}", "de"), (f"wie {UNKNOWN}", None),  # one of fifteen is a common one
        ("fr\u00fch gr\u00f6\u00dfer xa", None), ("fr\u00fch gr\u00f6\u00dfer xa xb", "de"),  # two accented
        ("fr\u00fch gr\u00f6\u00dfer Xa xb", None), ("gr\u00f6\u00dfer xa xb xc", None),
        ("the fr\u00fch gr\u00f6\u00dfer xa xb", "en"), ("\u00bfXa xb xc?", "es"), ("\u00bfXa xb?", None),
        ("x" * 293 + " wie xa", "de"), ("x" * 297 + " wie xa xb", None),  # 300 characters are read
        ("xa " * 98 + "xxx wie", None), ("xa " * 98 + "xx wie", "de"),
    ],
)  # fmt: skip
def test_the_least_that_tells_a_language(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_accents_of_words_that_are_not_common_ones_tell_a_language() -> None:
    assert language_of("Verlängerung kündigen spätestens übermorgen früh") == "de"


def test_no_english_text_is_flagged() -> None:
    assert hinted(ENGLISH_TEXTS) == []


def test_no_text_of_one_or_two_words_is_flagged_for_its_words() -> None:
    words = sorted({word for listed in OTHERS.values() for word in listed.split() if not word.endswith("'")})
    assert hinted([*words, *(f"{a} {b}" for a, b in pairwise(words))]) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Где моя карта?", "ru"),
        ("我的卡在哪里？", "zh"),
        ("カードはどこですか", "ja"),
        ("\u30ab\u6f22\u5b57\u6f22\u5b57", "ja"),
        ("и и", "ru"),
        ("내 카드는 어디에 있나요?", "ko"),
        ("Πού είναι η κάρτα μου;", "el"),
        ("أين بطاقتي؟", "ar"),
        ("איפה הכרטיס שלי", "he"),
        ("मेरा कार्ड कहाँ है", "hi"),
        ("บัตรของฉันอยู่ที่ไหน", "th"),
    ],
)
def test_letters_of_another_script_are_told_by_the_script(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text", ["the α and β of a test", "5 kΩ", "Ω", "What does 你好 mean?", "50 % off 🎉🎉🎉", "", "...", "42"]
)
def test_some_letters_of_another_script_say_nothing(text: str) -> None:
    assert hinted([text]) == []


def test_typographic_apostrophes_and_capitals_change_nothing() -> None:
    assert language_of("L’imprimante n’imprime que des pages blanches.") == "fr"
    assert language_of("WIE KANN ICH MEIN PASSWORT ZURÜCKSETZEN?") == "de"


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    english = "The cat sat on the mat, and it was there for a while. " * 10
    assert hinted([english + "Wie kann ich mein Passwort zurücksetzen? " * 50]) == []
    assert hinted(["Wie kann ich mein Passwort zurücksetzen? " * 10 + english]) != []


def test_a_prompt_before_a_text_is_not_read() -> None:
    prompt = "Represent this sentence for searching relevant passages: "
    assert list(IN_ENGLISH.on([f"{prompt}Wo ist meine Karte?"], len(prompt))) == [(0, "de?")]


def test_a_models_own_languages_are_not_flagged() -> None:
    assert list(LanguageHints(["en", "de"]).on(["Wo ist meine Karte?", "Où est ma carte ?"])) == [(1, "fr?")]
    assert list(LanguageHints(["de"]).on(["Wo ist meine Karte?", "I want to know where my card is."])) == [(1, "en?")]


def test_there_are_no_hints_where_languages_are_not_known_or_cannot_be_told() -> None:
    assert LanguageHints.of(None) is None
    assert LanguageHints.of(["en", "sv"]) is None
    assert LanguageHints.of(list(KNOWN)) is not None


def test_the_lists_are_words_as_they_are_looked_up() -> None:
    listed = [ENGLISH, *OTHERS.values()]
    for words in (each.split() for each in listed):
        assert len(words) == len(set(words))
        assert all(re.fullmatch(r"[^\W\d_]+'?", word) and word == word.lower() for word in words), words
    in_others = {word for each in OTHERS.values() for word in each.split()}
    assert not set(ENGLISH.split()) & in_others
    assert set(OFTEN_IN_ENGLISH.split()) <= in_others
