"""The same words written differently, and with another number."""

import re

import pytest

from training.corpora.surface_edits import surface_edits


def others(sentence: str, label: str = "1", draws: int = 60) -> set[str]:
    """What the sentence is paired with over many draws."""
    pairs = list(surface_edits([sentence] * draws))
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
