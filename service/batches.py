"""Which sentences, and which pairs of them, go through a graph together: alike in size, and never too many."""

from collections.abc import Iterable, Sequence

BATCH_TOKENS = 4096  # padded tokens in one run of an encoder: keeps a run's memory at some megabytes
# A graph of pairs makes many numbers of each pair of tokens, and may pad within itself to a size of its own.
BATCH_PAIRS = 32
BATCH_CELLS = BATCH_PAIRS * 32 * 32  # padded pairs of tokens in one run


def batched_by_cost(lengths: Sequence[int], budget: int = BATCH_TOKENS) -> list[list[int]]:
    """Positions, shortest first, in batches whose padded cost (longest x count) stays within the budget.

    One sentence longer than the budget makes a batch alone.
    """
    if sum(lengths) <= budget and max(lengths) * len(lengths) <= budget:  # the common case
        return [list(range(len(lengths)))]
    batches: list[list[int]] = [[]]
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches[-1] and lengths[i] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(i)
    return batches


def batched_by_cells(
    shapes: Sequence[tuple[int, int]], budget: int = BATCH_CELLS, most: int = BATCH_PAIRS
) -> list[list[int]]:
    """Positions of pairs, those of the fewest cells first, in batches within the budget and of at most `most`.

    Args:
        shapes: of each pair, the tokens of the one sentence and of the other.
        budget: padded cells of a batch (longest of a x longest of b x count); a larger pair makes a batch alone.
        most: pairs in a batch.
    """
    batches: list[list[int]] = []
    rows = columns = 0
    for i in sorted(range(len(shapes)), key=lambda i: shapes[i][0] * shapes[i][1]):
        rows, columns = max(rows, shapes[i][0]), max(columns, shapes[i][1])
        if not batches or len(batches[-1]) == most or rows * columns * (len(batches[-1]) + 1) > budget:
            batches.append([])
            rows, columns = shapes[i]
        batches[-1].append(i)
    return batches


def padded_tokens(lengths: Iterable[int]) -> int:
    """What sentences of these lengths cost together: longest x count."""
    count = longest = 0
    for length in lengths:
        count += 1
        longest = max(longest, length)
    return count * longest


def padded_cells(shapes: Iterable[tuple[int, int]]) -> int:
    """What pairs of these shapes cost together: longest of a x longest of b x count."""
    count = rows = columns = 0
    for a, b in shapes:
        count += 1
        rows, columns = max(rows, a), max(columns, b)
    return count * rows * columns
