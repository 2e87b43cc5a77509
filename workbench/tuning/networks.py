"""What is tuned: a module from the ids and lengths of both sentences to an answer.

Shapes: B pairs, S tokens of a, T of b, D embedding dimensions, K classes.
"""

import torch
from torch import Tensor, nn

from training.models.heads import PairHead

HEAD_LENGTH = 4.0  # mean length of the embeddings that a new head reads; published ones are far shorter


class SiamesePair(nn.Module):
    """An encoder of single sentences, and what compares two embeddings: the cosine, or a head."""

    def __init__(self, encoder: nn.Module, head: "ScaledHead | None" = None) -> None:
        """With a head, its log-probabilities are the answer."""
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict({} if head is None else {"head": head})

    def embeddings(
        self, ids_a_BS: Tensor, lengths_a_B: Tensor, ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Both sides as one batch -> [B, D], [B, D]."""
        tokens = max(ids_a_BS.shape[1], ids_b_BT.shape[1])
        ids = torch.cat([nn.functional.pad(ids, (0, tokens - ids.shape[1])) for ids in (ids_a_BS, ids_b_BT)])
        a_BD, b_BD = self.encoder(ids, torch.cat([lengths_a_B, lengths_b_B])).float().chunk(2)
        return a_BD, b_BD

    def forward(self, ids_a_BS: Tensor, lengths_a_B: Tensor, ids_b_BT: Tensor, lengths_b_B: Tensor) -> Tensor:
        """Ids [B, S], [B, T] and lengths [B] of both -> scores [B], or log-probabilities [B, K]."""
        a_BD, b_BD = self.embeddings(ids_a_BS, lengths_a_B, ids_b_BT, lengths_b_B)
        if not self.heads:
            return nn.functional.cosine_similarity(a_BD, b_BD)
        answer: Tensor = self.heads["head"](a_BD, b_BD)
        return answer


class ScaledHead(nn.Module):
    """A head that reads embeddings times a factor: with short embeddings its weights would learn too slowly."""

    def __init__(self, head: PairHead, factor: float) -> None:
        """Store the head and its factor."""
        super().__init__()
        self.head, self.factor = head, factor

    def forward(self, a_BD: Tensor, b_BD: Tensor) -> Tensor:
        """Embeddings [B, D], [B, D] -> log-probabilities [B, K]."""
        answer: Tensor = self.head(a_BD * self.factor, b_BD * self.factor)
        return answer

    @torch.no_grad()
    def folded(self, temperature: float = 1.0) -> PairHead:
        """The same as a plain head: the factor in its first weights, and its last ones divided by a temperature."""
        linear = {name: value.clone() for name, value in self.head.state_dict().items()}
        for name, power in (("product.weight", 2), ("difference.weight", 1), ("direction.weight", 1)):
            linear[name] *= self.factor**power
        for name in ("output.weight", "output.bias"):
            linear[name] /= temperature
        hidden, dim = linear["product.weight"].shape
        plain = PairHead(dim, len(linear["output.bias"]), hidden, directed=True)
        plain.load_state_dict(linear)
        return plain.eval()
