"""What reads a caller's text takes linear time: hostile texts of 200 KB, in seconds of this process' own CPU.

What is quadratic takes minutes for them; what is linear less than two seconds, on a slow machine too.
"""

from collections.abc import Callable, Iterable, Sequence
from time import process_time

import pytest

from core.facts import facts_of
from core.subwords import has_text
from core.text import split_words
from service.scoring.documents import plain, sentences_in, sentences_of
from service.scoring.evidence import stems_of

SIZES = (1_000, 12_500, 200_000)  # characters; what is quadratic fails before the largest
MOST_SECONDS = 20.0
SEEDS = (
    *(
        "-",
        "a-",
        "- ",
        "1,",
        "1.",
        "7",
        ",",
        '"',
        "'",
        "(",
        "[",
        "](",
        "![",
        "[a](",
        "{",
        " ",
        "\t",
        "\n",
        ".",
        "..",
        "*",
    ),
    *(
        "**",
        "**a",
        "__a__ ",
        "_",
        "=",
        "#",
        "|",
        "| ",
        "a\tb\n",
        "a | b | c\n",
        "- a\n",
        "A.",
        "n't",
        "x ",
        "\u3000",
        "\u201d",
    ),
    *("two ", "a-1 ", "a-1-", "1 000 ", "at least ", "turn ", "a", "May ", "1.2.3", "1x", "no. ", "half a "),
    *('-1,"([ .a-', " :-|\t"),
)
AROUND = (("", ""), ("a\tb\n", "\tx\n"), ("|a|b|\n|", "|x|\n"))
READERS: dict[str, Callable[[str], object]] = {
    "sentences_in": sentences_in,
    "sentences_of": lambda text: list(sentences_of(text)),
    "plain": plain,
    "stems_of": lambda text: list(stems_of(text)),
    "facts_of": facts_of,
    "has_text": has_text,
    "split_words": split_words,
}


def texts_of(size: int, around: Sequence[tuple[str, str]] = AROUND) -> Iterable[str]:
    """Hostile texts of about a size."""
    for seed in SEEDS:
        for before, after in around:
            yield before + (seed * (size // len(seed))) + after


@pytest.mark.parametrize("reader", READERS)
def test_time_is_linear(reader: str) -> None:
    for size in SIZES:
        for text in texts_of(size, AROUND[:1] if reader == "facts_of" else AROUND):
            began = process_time()
            READERS[reader](text)
            took = process_time() - began
            assert took < MOST_SECONDS * size / SIZES[-1] + 1, (took, size, text[:20])
