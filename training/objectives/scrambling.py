"""Scrambling: words are shuffled, so that a recurrent encoder cannot rely on memorised sequences.

J. Wieting, K. Gimpel, "Revisiting Recurrent Networks for Paraphrastic Sentence Embeddings", ACL 2017, section 4.2.
Shapes: B pairs, T tokens.
"""

from typing import Literal

import torch
from torch import Tensor

# "pairs": both sentences of a pair or neither, whole; and two of footnote 5: "sentences": each for itself, whole;
# "swaps": every sentence, as many swaps of two words as a Poisson distribution gives.
Scrambling = Literal["pairs", "sentences", "swaps"]
Inputs = tuple[Tensor, Tensor]  # ids [B, T], lengths [B]


class Scrambler:
    """Shuffles the words of sentences before they are encoded."""

    def __init__(self, rate: float, seed: int, how: Scrambling = "pairs") -> None:
        """`rate`: a probability, or the mean number of swaps; a generator of its own, which is in the checkpoint."""
        self.rate, self.how = rate, how
        self.generator = torch.Generator().manual_seed(2**32 + seed)  # not the stream of the random negatives

    def __call__(self, left: Inputs, right: Inputs) -> tuple[Inputs, Inputs]:
        """Padded ids and lengths of both sides -> the same, scrambled; padding stays in place."""
        if self.rate == 0:
            return left, right
        if self.how == "swaps":
            return self._swapped(left), self._swapped(right)
        on_left_B = torch.rand(len(left[1]), generator=self.generator) < self.rate
        on_right_B = on_left_B
        if self.how == "sentences":
            on_right_B = torch.rand(len(right[1]), generator=self.generator) < self.rate
        return self._shuffled(left, on_left_B), self._shuffled(right, on_right_B)

    def generators(self) -> list[torch.Generator]:
        """Generators whose state is in the checkpoint; none without scrambling."""
        return [self.generator] if self.rate > 0 else []

    def _shuffled(self, inputs: Inputs, chosen_B: Tensor) -> Inputs:
        ids_BT, lengths_B = inputs
        place_BT = torch.arange(ids_BT.shape[1]).expand(ids_BT.shape)
        key_BT = torch.rand(ids_BT.shape, generator=self.generator)
        key_BT = torch.where(place_BT < lengths_B[:, None], key_BT, 2.0)  # padding last
        order_BT = torch.where(chosen_B[:, None], key_BT.argsort(dim=1, stable=True), place_BT)
        return ids_BT.gather(1, order_BT), lengths_B

    def _swapped(self, inputs: Inputs) -> Inputs:
        ids_BT, lengths_B = inputs[0].clone(), inputs[1]
        swaps_B = torch.poisson(torch.full(lengths_B.shape, self.rate), generator=self.generator)
        for turn in range(int(swaps_B.max())):
            (rows,) = (swaps_B > turn).nonzero(as_tuple=True)
            share = torch.rand((2, len(rows)), generator=self.generator)
            first, second = (share * lengths_B[rows]).long()
            ids_BT[rows, first], ids_BT[rows, second] = ids_BT[rows, second], ids_BT[rows, first]
        return ids_BT, lengths_B
