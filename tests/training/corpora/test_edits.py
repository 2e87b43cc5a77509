"""Rewrites and edits by rules: of who does what to whom, of how a text is written, and of requests."""

import re

import pytest

from training.corpora.edits import edits


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


def test_a_place_at_the_end_may_come_first() -> None:
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


def test_start_and_end_are_exchanged() -> None:
    assert "is there a train from rome to milan" in made("is there a train from milan to rome")["0"]


def test_frames_and_nouns_say_the_same() -> None:
    found = made("How do I cancel my order?")
    assert found["0"] == set()
    assert "What is the way to cancel my order?" in found["1"]
    assert any("cancellation of my order" in text for text in found["1"])
    assert made("the weather was fine") == {"0": set(), "1": set()}
