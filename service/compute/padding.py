"""Sentences and pairs of different lengths in padded batches: their shapes, their size, and which go together."""

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

Shape = tuple[int, ...]  # number of tokens of a sentence, or of both sentences of a pair


class Padding(NamedTuple):
    """The shape of a padded batch: every sentence as long as the longest."""

    longest: Shape
    items: int

    def with_(self, other: "Padding") -> "Padding":
        """The shape of both batches in one."""
        return Padding(tuple(map(max, self.longest, other.longest)), self.items + other.items)


class BatchBudget(NamedTuple):
    """The largest batch of one run; keeps its memory at some megabytes, and what it touches in the CPU's cache."""

    size: int  # padded: longest x count for sentences, longest of a x longest of b x count for pairs
    items: int

    def most(self, longest: Shape) -> int:
        """How many items of this shape one batch may have, at least 1."""
        return max(1, min(self.items, self.size // prod(longest)))


def padded(shapes: Sequence[Shape]) -> Padding:
    """The shape of a batch of at least one sentence or pair."""
    return Padding(shapes[0] if len(shapes) == 1 else tuple(map(max, zip(*shapes, strict=True))), len(shapes))


def batched(
    shapes: Sequence[Shape], cost: Callable[[Shape], float], most: Callable[[Shape], int], *, alike: bool = False
) -> list[list[int]]:
    """Positions in batches, the cheapest first.

    Args:
        shapes: of all items.
        cost: of one item.
        most: the number of items that a batch may have whose longest has this shape, at least 1.
        alike: only items of one shape are in a batch.
    """
    costs = list(map(cost, shapes))
    batches: list[list[int]] = []
    batch: list[int] = []
    longest: Shape = ()
    fit = 0
    for i in sorted(range(len(shapes)), key=lambda i: (costs[i], shapes[i])):
        shape = shapes[i]
        if batch and shape != longest:
            longest = tuple(map(max, longest, shape))
            fit = 0 if alike else most(longest)
        if len(batch) >= fit:
            batch, longest, fit = [], shape, most(shape)
            batches.append(batch)
        batch.append(i)
    return batches
