"""Rewrites and edits of who does what to whom."""

from training.corpora.role_edits import role_edits


def changed(*sentences: str) -> dict[str, str]:
    """The other text of each pair -> its label."""
    return {(pair.b if pair.a in sentences else pair.a): pair.label or "" for pair in role_edits(sentences)}


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
