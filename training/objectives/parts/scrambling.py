"""Scrambling: words are shuffled, so that a recurrent encoder cannot rely on memorised sequences.

J. Wieting, K. Gimpel, "Revisiting Recurrent Networks for Paraphrastic Sentence Embeddings", ACL 2017, section 4.2.
Shapes: B pairs, T tokens.
"""

import torch
from torch import Tensor

Inputs = tuple[Tensor, Tensor]  # ids [B, T], lengths [B]


class Scrambler:
    """With a given probability both sentences of a pair are shuffled independently."""

    def __init__(self, probability: float, seed: int) -> None:
        """Set the probability; a separate generator, whose state is in the checkpoint, chooses and shuffles."""
        self.probability = probability
        self.generator = torch.Generator().manual_seed(2**32 + seed)  # not the stream of the random negatives

    def __call__(self, left: Inputs, right: Inputs) -> tuple[Inputs, Inputs]:
        """Padded ids and lengths of both sides -> the same, scrambled; padding stays in place."""
        if self.probability == 0:
            return left, right
        chosen_B = torch.rand(len(left[1]), generator=self.generator) < self.probability
        return self._shuffled(left, chosen_B), self._shuffled(right, chosen_B)

    def generators(self) -> list[torch.Generator]:
        """Generators whose state is in the checkpoint; none without scrambling."""
        return [self.generator] if self.probability > 0 else []

    def _shuffled(self, inputs: Inputs, chosen_B: Tensor) -> Inputs:
        ids_BT, lengths_B = inputs
        place_BT = torch.arange(ids_BT.shape[1]).expand(ids_BT.shape)
        key_BT = torch.rand(ids_BT.shape, generator=self.generator)
        key_BT = torch.where(place_BT < lengths_B[:, None], key_BT, 2.0)  # padding last
        order_BT = torch.where(chosen_B[:, None], key_BT.argsort(dim=1, stable=True), place_BT)
        return ids_BT.gather(1, order_BT), lengths_B
