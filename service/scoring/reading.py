"""What reading costs: texts weighed, and cut into turns."""

from collections.abc import Iterator, Sequence

_TIMES_BEYOND_ASCII = 8  # for other characters, each of which is looked up
_TURN_SECONDS = 0.0008  # of reading in the event loop for one request before other requests have a turn


def weight_of(text: str) -> int:
    """Its cost, in characters of ASCII."""
    return len(text) * (1 if text.isascii() else _TIMES_BEYOND_ASCII)


def turns_of(chars: Sequence[float], seconds: float) -> Iterator[tuple[float, slice]]:
    """Reading cut into turns.

    Args:
        chars: cost of each text, in characters of ASCII.
        seconds: of one character.

    Yields:
        Expected seconds of a turn, and the places of its texts.
    """
    start, needs, most = 0, 0.0, _TURN_SECONDS / seconds
    for i, each in enumerate(chars):
        if needs >= most:
            yield needs * seconds, slice(start, i)
            start, needs = i, 0.0
        needs += each
    yield needs * seconds, slice(start, len(chars))
