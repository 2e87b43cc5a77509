"""What an encoder finds hard: wrong answers near the question, requests of near intents."""

from collections.abc import Sequence

import numpy as np

from training.corpora.hard import GROUP, hard_groups, near_intents
from training.pairs import Pair

ANGLES = {"q": 0, "right": 20, "w10": 10, "w40": 40, "w50": 50, "w60": 60, "w70": 70, "o21": 21, "o30": 30, "o80": 80}


def encode(texts: Sequence[str]) -> np.ndarray:
    """Texts on a circle: the nearer the angle, the higher the cosine."""
    angles = np.radians([ANGLES.get(text, 90) for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def answers(*texts: str) -> list[Pair]:
    return [Pair("q", text, label=str(int(text == "right")), group="g") for text in texts]


def test_the_hardest_wrong_answers_of_the_question_come_first() -> None:
    pairs = answers("w70", "w40", "right", "w10", "w60", "w50")
    assert [(p.b, p.label, p.group) for p in hard_groups(pairs, encode)] == [
        ("right", "1", "g"),
        *((f"w{angle}", "0", "g") for angle in (10, 40, 50, 60)),
    ]


def test_other_questions_answers_fill_a_group_unless_they_are_as_near_as_the_right_one() -> None:
    others = [Pair("another", text, label="0", group="h") for text in ("o80", "o21", "o30", "w60")]
    found = hard_groups([*answers("right", "w70"), *others], encode)
    assert [p.b for p in found] == ["right", "w70", "o30", "w60", "o80"]  # o21: a cosine over .95 of the right one's
    assert {p.a for p in found} == {"q"}
    assert len(found) == GROUP
    assert hard_groups(answers("right", "w70"), encode) == []  # too few wrong ones
    twice = [*answers("right", "w40", "w50", "w60", "w70"), Pair("q", "o30", label="1", group="g")]
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
