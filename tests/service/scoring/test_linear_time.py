"""What reads a caller's text takes linear time: hostile texts of 50 KB, in seconds of this process' own CPU.

What is quadratic takes many seconds for them; what is linear a fifth of one, ten times less than it may.
"""

from collections.abc import Callable, Iterable, Sequence
from time import process_time

import pytest

from core.facts import facts_of
from core.subwords import has_text
from core.text import split_words
from service.scoring.documents import plain, sentences_in, spans_of
from service.scoring.evidence import stems_of

SIZES = (1_000, 12_500, 50_000)  # characters; what is quadratic fails before the largest
SECONDS_OF_A_CHARACTER = 4e-5
SEEDS = (
    *("-", "a-", "- ", "1,", "1.", "7", ",", '"', "'", "(", "[", "](", "![", "[a](", "{", " ", "\t", "\n", ".", ".."),
    *("*", "**", "**a", "__a__ ", "_", "=", "#", "|", "| ", "a\tb\n", "a | b | c\n", "- a\n", "A.", "n't", "x "),
    *("\u3000", "\u201d", "two ", "a-1 ", "a-1-", "1 000 ", "at least ", "turn ", "a", "May ", "1.2.3", "1x", "no. "),
    *("half a ", '-1,"([ .a-', " :-|\t"),
    # of documents: cells, items, headings, blank lines between
    *("a|", "-\n", "a.\n\n", "\t\n", "A b\n", "- a:\n", "\n \t", ". A"),
    "".join(" " * (n % 300) + "- a:\n" for n in range(150)),
)  # fmt: skip
AROUND = (("", ""), ("a\tb\n", "\tx\n"), ("|a|b|\n|", "|x|\n"))
READERS: dict[str, Callable[[str], object]] = {
    "sentences_in": sentences_in,
    "spans_of": lambda text: list(spans_of(text)),
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
            assert took < SECONDS_OF_A_CHARACTER * size + 1, (took, size, text[:20])
