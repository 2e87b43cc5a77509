"""Tokenised sentences in flat arrays, and the padded batches made of them."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from contract.padding import PADDING_ID
from contract.tokenizer import Tokenizer

Indices = npt.NDArray[np.int64]


class Sentences:
    """n tokenised sentences, held as one flat array of ids."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> None:
        """Tokenise every text as the service will.

        Raises:
            ValueError: no texts, or one without any visible character; readers should have dropped it.
        """
        if not texts:
            raise ValueError("there are no sentences to read")
        encoded = [tokenizer.encode(text, max_tokens).ids for text in texts]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        if not lengths.all():
            raise ValueError(f"text {int(np.argmin(lengths))} has no tokens: {texts[int(np.argmin(lengths))]!r}")
        self.lengths = lengths
        self.flat = np.concatenate([np.array(ids, dtype=np.int32) for ids in encoded])
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, indices: Indices) -> tuple[Tensor, Tensor]:
        """Padded `input_ids` int64 [B, T] and `lengths` int64 [B] of some sentences."""
        lengths = self.lengths[indices]
        position = np.arange(int(lengths.max()))[None, :]
        real = position < lengths[:, None]
        source = self.offsets[indices][:, None] + position
        ids = np.where(real, self.flat[np.where(real, source, 0)], PADDING_ID)
        return torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(lengths)


def shuffled(n: int, batch_size: int, seed: int, epoch: int, *, drop_last: bool = False) -> Iterator[Indices]:
    """Batches of a random order of 0..n-1 that depends on (seed, epoch) alone, so that a run can resume inside it."""
    order = np.random.default_rng((seed, epoch)).permutation(n)
    end = n - n % batch_size if drop_last else n
    for start in range(0, end, batch_size):
        yield order[start : start + batch_size]


def shard(indices: Indices, rank: int, world: int) -> Indices:
    """The part of a batch that one of `world` processes takes."""
    return indices[rank::world]
