"""Requests in other words, and other requests in the same words."""

from training.corpora.request_edits import request_edits


def made(text: str) -> dict[str, set[str]]:
    """All texts that some seeds make of one, by label."""
    found: dict[str, set[str]] = {"0": set(), "1": set()}
    for seed in range(60):
        for pair in request_edits([text], seed):
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
