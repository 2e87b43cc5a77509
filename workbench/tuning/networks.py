"""What is tuned: a module from the ids and lengths of both sentences to an answer.

Shapes: B pairs, S tokens of a, T of b, D embedding dimensions.
"""

import torch
from torch import Tensor, nn


class SiamesePair(nn.Module):
    """An encoder of single sentences, two of which are compared by their cosine."""

    def __init__(self, encoder: nn.Module) -> None:
        """`encoder`: ids and lengths -> embeddings."""
        super().__init__()
        self.encoder = encoder

    def forward(self, ids_a_BS: Tensor, lengths_a_B: Tensor, ids_b_BT: Tensor, lengths_b_B: Tensor) -> Tensor:
        """Ids [B, S], [B, T] and lengths [B] of both, as one batch -> scores [B]."""
        tokens = max(ids_a_BS.shape[1], ids_b_BT.shape[1])
        ids = torch.cat([nn.functional.pad(ids, (0, tokens - ids.shape[1])) for ids in (ids_a_BS, ids_b_BT)])
        a_BD, b_BD = self.encoder(ids, torch.cat([lengths_a_B, lengths_b_B])).float().chunk(2)
        return nn.functional.cosine_similarity(a_BD, b_BD)
