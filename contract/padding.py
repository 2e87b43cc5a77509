"""Lists of token ids -> rectangular arrays; the same padding in training and service."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

PADDING_ID = 0
_FEW = 8  # up to this number of sentences lists are faster than numpy


def pad(ids: Sequence[Sequence[int]], least: int = 1) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pad on the right with `PADDING_ID` to the longest sentence of the batch.

    Args:
        ids: B sentences, each with at least one token id.
        least: pad further, to this length, if it is longer.

    Returns:
        `input_ids` int64 [B, T] and `lengths` int64 [B].

    Raises:
        ValueError: no sentence, or a sentence without tokens.
    """
    if not ids:
        raise ValueError("pad needs at least one sentence")
    lengths = list(map(len, ids))
    if not all(lengths):
        raise ValueError(f"sentence {lengths.index(0)} has no tokens")
    longest = max(least, *lengths)
    if len(ids) <= _FEW:
        rows = [[*sentence, *(PADDING_ID,) * (longest - n)] for sentence, n in zip(ids, lengths, strict=True)]
        return np.array(rows, dtype=np.int64), np.array(lengths, dtype=np.int64)
    counts = np.array(lengths, dtype=np.int64)
    input_ids = np.full((len(ids), longest), PADDING_ID, dtype=np.int64)
    real = np.arange(longest) < counts[:, None]
    input_ids[real] = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=sum(lengths))
    return input_ids, counts
