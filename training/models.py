"""What is trained: an encoder and, for supervised tasks, the heads over pairs of its embeddings."""

from torch import Tensor, nn

from training.heads import PairHead
from training.layers import WordEmbedding


def output_dim(encoder: nn.Module) -> int:
    """Dimensions of an encoder's sentence embeddings."""
    dim = encoder.output_dim
    assert isinstance(dim, int)
    return dim


class SiameseModel(nn.Module):
    """One encoder with tied weights for both sentences; heads by task name (`similarity`, `entailment`)."""

    def __init__(self, encoder: nn.Module, heads: dict[str, PairHead] | None = None) -> None:
        """Assemble; a transfer model has no heads, its score is the cosine."""
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(heads or {})

    @property
    def embedding(self) -> WordEmbedding:
        """The encoder's word embedding."""
        embedding = self.encoder.embedding
        assert isinstance(embedding, WordEmbedding)
        return embedding

    def encode(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """(ids [B, T], lengths [B]) -> embeddings [B, D], on the model's own device."""
        device = self.embedding.weight.device
        embeddings: Tensor = self.encoder(batch[0].to(device), batch[1].to(device))
        return embeddings
