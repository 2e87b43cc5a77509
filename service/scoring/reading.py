"""What reading costs: texts weighed, cut into turns, and counted."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from contract.tokenizer import Encoded

_TIMES_BEYOND_ASCII = 8  # for other characters, each of which is looked up
_TURN_SECONDS = 0.0008  # of reading in the event loop for one request before other requests have a turn


class Counted(NamedTuple):
    """What metrics count of sentences."""

    sentences: int
    words: int
    unknown: int
    truncated: int

    @classmethod
    def of(cls, sentences: Sequence[Encoded]) -> "Counted":
        """The counts of these."""
        _, words, unknown, truncated = zip(*sentences, strict=True)
        return cls(len(sentences), sum(words), sum(unknown), sum(truncated))


def weight_of(text: str) -> int:
    """Its cost, in characters of ASCII."""
    return len(text) * (1 if text.isascii() else _TIMES_BEYOND_ASCII)


def turns_of(seconds: Sequence[float]) -> Iterator[tuple[float, slice]]:
    """Reading cut into turns: expected seconds of each text -> those of each turn, and the places of its texts."""
    start, needs = 0, 0.0
    for i, each in enumerate(seconds):
        if needs >= _TURN_SECONDS:
            yield needs, slice(start, i)
            start, needs = i, 0.0
        needs += each
    yield needs, slice(start, len(seconds))
