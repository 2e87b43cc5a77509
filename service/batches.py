"""Which sentences, and which pairs of them, go through a graph together: alike in size, and never too many."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

Shape = tuple[int, ...]  # tokens: of a sentence, or of one sentence and of the other


class Padding(NamedTuple):
    """A batch as a graph sees it: every sentence as long as the longest."""

    longest: Shape
    items: int

    @property
    def size(self) -> int:
        """Padded cost: longest x count for sentences, longest of a x longest of b x count for pairs."""
        return prod(self.longest) * self.items

    def with_(self, other: "Padding") -> "Padding":
        """Both batches in one."""
        return Padding(tuple(map(max, self.longest, other.longest)), self.items + other.items)


class Budget(NamedTuple):
    """What one run may hold, so that its memory stays at some megabytes."""

    size: int  # padded
    items: int

    def holds(self, padding: Padding) -> bool:
        """Whether such a batch stays within it."""
        return padding.size <= self.size and padding.items <= self.items


SENTENCES = Budget(4096, 4096)
# A graph of pairs makes many numbers of each pair of tokens, and may pad within itself to a size of its own.
PAIRS = Budget(32 * 32 * 32, 32)


def padded(shapes: Iterable[Shape]) -> Padding:
    """At least one sentence, or pair, as one batch."""
    rows = list(shapes)
    return Padding(tuple(map(max, zip(*rows, strict=True))), len(rows))


def batched(shapes: Sequence[Shape], budget: Budget) -> list[list[int]]:
    """Positions in batches within the budget, the smallest first.

    What is larger than the budget by itself makes a batch alone.
    """
    if budget.holds(padded(shapes)):  # the common case
        return [list(range(len(shapes)))]
    sizes = list(map(prod, shapes))
    batches: list[list[int]] = []
    batch: list[int] = []
    longest: Shape = ()
    for i in sorted(range(len(shapes)), key=sizes.__getitem__):
        shape = shapes[i]
        if batch and shape != longest:
            longest = tuple(map(max, longest, shape))
        if not batch or len(batch) == budget.items or prod(longest) * (len(batch) + 1) > budget.size:
            batch, longest = [], shape
            batches.append(batch)
        batch.append(i)
    return batches
