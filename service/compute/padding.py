"""Sentences and pairs of different lengths in padded batches: their shapes, their size, and which go together."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

Shape = tuple[int, ...]  # number of tokens of a sentence, or of both sentences of a pair


class Padding(NamedTuple):
    """The shape of a padded batch: every sentence as long as the longest."""

    longest: Shape
    items: int

    @property
    def size(self) -> int:
        """Padded cost: longest x count for sentences, longest of a x longest of b x count for pairs."""
        return prod(self.longest) * self.items

    def with_(self, other: "Padding") -> "Padding":
        """The shape of both batches in one."""
        return Padding(tuple(map(max, self.longest, other.longest)), self.items + other.items)


class Budget(NamedTuple):
    """The largest batch of one run; keeps its memory at some megabytes, and what it touches in the CPU's cache."""

    size: int  # padded
    items: int

    def holds(self, padding: Padding) -> bool:
        """Whether a batch of this shape is within the budget."""
        return padding.size <= self.size and padding.items <= self.items


def padded(shapes: Sequence[Shape]) -> Padding:
    """The shape of a batch of at least one sentence or pair."""
    return Padding(shapes[0] if len(shapes) == 1 else tuple(map(max, zip(*shapes, strict=True))), len(shapes))


def batched(shapes: Sequence[Shape], budget: Budget) -> list[list[int]]:
    """Positions in batches within the budget, the smallest first; an item over the budget is a batch of its own."""
    sizes = list(map(prod, shapes))
    batches: list[list[int]] = []
    batch: list[int] = []
    longest: Shape = ()
    padded_size = 0
    for i in sorted(range(len(shapes)), key=sizes.__getitem__):
        shape = shapes[i]
        if batch and shape != longest:
            longest = tuple(map(max, longest, shape))
            padded_size = prod(longest)
        if not batch or len(batch) == budget.items or padded_size * (len(batch) + 1) > budget.size:
            batch, longest, padded_size = [], shape, sizes[i]
            batches.append(batch)
        batch.append(i)
    return batches
