"""Tokenised sentences in flat arrays, and the padded batches made of them."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from core.subwords import AnyTokenizer
from core.tokenizer import PADDING_ID

Indices = npt.NDArray[np.int64]
SIZE_STEP = 8  # tokens


class Sentences:
    """n tokenised sentences, stored as one flat array of ids."""

    def __init__(self, texts: Sequence[str], tokenizer: AnyTokenizer, max_tokens: int) -> None:
        """Tokenise every text as the service does.

        Raises:
            ValueError: no texts, or one without a token.
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
    """Batches of a random order of 0..n-1 that depends only on (seed, epoch), so that a run can resume within it."""
    order = np.random.default_rng((seed, epoch)).permutation(n)
    end = n - n % batch_size if drop_last else n
    for start in range(0, end, batch_size):
        yield order[start : start + batch_size]


def alike(lengths: npt.NDArray[np.int64], batch_size: int, pool: int, seed: int, epoch: int) -> Iterator[Indices]:
    """Batches of sentences of like length, so that a recurrent encoder takes few steps for most of them.

    The pools of a random order (`pooled`) are cut into batches, which come in a random order. It depends only on (seed,
    epoch), as that of `shuffled` does.
    """
    generator = np.random.default_rng((seed, epoch))
    batches = pooled(generator.permutation(len(lengths)), lengths, batch_size, pool)
    return (batches[i] for i in generator.permutation(len(batches)))


def pooled(order: Indices, sizes: npt.NDArray[np.int64], batch_size: int, pool: int) -> list[Indices]:
    """The batches of an order that is cut into pools of `pool` batches, each sorted by `sizes` [n]."""
    batches: list[Indices] = []
    for start in range(0, len(order), pool * batch_size):
        drawn = order[start : start + pool * batch_size]
        drawn = drawn[np.argsort(sizes[drawn], kind="stable")]
        batches += [drawn[i : i + batch_size] for i in range(0, len(drawn), batch_size)]
    return batches


def by_size(lengths_a: npt.ArrayLike, lengths_b: npt.ArrayLike) -> Indices:
    """An order of n pairs in which neighbours are alike in both lengths [n], so that a batch has little padding."""
    steps, columns = -(-np.asarray(lengths_a) // SIZE_STEP), np.asarray(lengths_b)
    # There and back: neighbours stay alike from one step to the next.
    return np.lexsort((np.where(steps % 2 == 0, columns, -columns), steps))
