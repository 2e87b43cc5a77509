"""Lists of token ids -> rectangular arrays; the same padding in training and service."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

PADDING_ID = 0


def pad(ids: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pad on the right with `PADDING_ID` to the longest sentence of the batch.

    Args:
        ids: B sentences, each with at least one token id.

    Returns:
        `input_ids` int64 [B, T] and `lengths` int64 [B].

    Raises:
        ValueError: no sentence, or a sentence without tokens.
    """
    if not ids:
        raise ValueError("pad needs at least one sentence")
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    if not lengths.all():
        raise ValueError(f"sentence {int(np.argmin(lengths))} has no tokens")
    if len(ids) == 1:  # the commonest batch: nothing to pad
        return np.array(ids, dtype=np.int64), lengths
    input_ids = np.full((len(ids), int(lengths.max())), PADDING_ID, dtype=np.int64)
    real = np.arange(input_ids.shape[1]) < lengths[:, None]
    input_ids[real] = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum()))
    return input_ids, lengths
