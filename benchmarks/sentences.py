"""Seeded sentences of 10 to 20 words for load tests: they need no corpus, and are distinct, so that caches miss."""

import random

_SUBJECTS = [
    "a man", "two children", "the old sailor", "my neighbour", "a young doctor",
    "the committee", "every student", "a brown dog",
]  # fmt: skip
_VERBS = [
    "is carrying", "has repaired", "will paint", "cannot find", "was looking at",
    "reads about", "sold", "remembers",
]  # fmt: skip
_OBJECTS = [
    "a wooden boat", "the annual report", "his new bicycle", "a bowl of soup",
    "the lost key", "an unusual letter", "green tea",
]  # fmt: skip
_PLACES = [
    "near the harbour", "at the library", "in a crowded street", "before the meeting",
    "after lunch", "on the third floor",
]  # fmt: skip
_TAILS = [
    "while it rains", "because nobody else would", "without saying a word", "for the first time this year",
    "", "and then leaves",
]  # fmt: skip


def sentences(count: int, seed: int) -> list[str]:
    """`count` sentences; a number makes each one distinct."""
    rng = random.Random(seed)
    parts = (_SUBJECTS, _VERBS, _OBJECTS, _PLACES, _TAILS)
    return [f"{' '.join(rng.choice(p) for p in parts)} {rng.randrange(10**6)}.".capitalize() for _ in range(count)]
