"""The kinds of trained model: an encoder with heads over its embeddings, or a network that reads both texts."""

import math
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from training.models.heads import PairHead, SentenceHead
from training.models.layers import WordEmbedding

Batch = tuple[Tensor, Tensor]  # input_ids [B, T], lengths [B]
Precision = Literal["float32", "bfloat16"]


def output_dim(encoder: nn.Module) -> int:
    """Dimensions of an encoder's sentence embeddings."""
    dim = encoder.output_dim
    assert isinstance(dim, int)
    return dim


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights lie."""
    return next(model.parameters()).device


class SiameseModel(nn.Module):
    """One encoder with tied weights for both sentences; heads by task: `similarity`, `entailment`, `sentiment`."""

    def __init__(
        self,
        encoder: nn.Module,
        heads: Mapping[str, PairHead | SentenceHead] | None = None,
        precision: Precision = "float32",
    ) -> None:
        """A transfer model has no heads; its score is the cosine.

        `precision` is that of the encoder's products of matrices in training; weights and everything else, evaluation
        included, are float32.
        """
        super().__init__()
        self.precision = precision
        self.encoder = encoder
        self.heads = nn.ModuleDict(heads or {})

    @property
    def embedding(self) -> WordEmbedding:
        """The encoder's word embedding."""
        embedding = self.encoder.embedding
        assert isinstance(embedding, WordEmbedding)
        return embedding

    def encode(self, batch: Batch) -> Tensor:
        """(ids [B, T], lengths [B]) -> embeddings [B, D], on the model's own device."""
        device = device_of(self)
        low = self.training and self.precision == "bfloat16"
        with torch.autocast(device.type, torch.bfloat16, enabled=low):
            embeddings: Tensor = self.encoder(batch[0].to(device), batch[1].to(device))
        return embeddings.float()

    def encode_pair(self, left: Batch, right: Batch) -> tuple[Tensor, Tensor]:
        """Both sides of B pairs at once -> embeddings [B, D] and [B, D]; a recurrent encoder takes as many steps as
        for one side."""
        tokens = max(left[0].shape[1], right[0].shape[1])
        ids = torch.cat([nn.functional.pad(ids, (0, tokens - ids.shape[1])) for ids, _ in (left, right)])
        a, b = self.encode((ids, torch.cat([left[1], right[1]]))).chunk(2)
        return a, b


class InteractionModel(nn.Module):
    """A network that reads both sentences together; its log-probabilities of classes are the answer."""

    def __init__(self, network: nn.Module, *, both_orders: bool) -> None:
        """`both_orders`: answer with the mean of the probabilities of (a, b) and (b, a), which is symmetric."""
        super().__init__()
        self.network, self.both_orders = network, both_orders

    @property
    def embedding(self) -> WordEmbedding:
        """The network's word embedding."""
        embedding = self.network.embedding
        assert isinstance(embedding, WordEmbedding)
        return embedding

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids and lengths of both sentences -> log-probabilities [B, K]."""
        output: Tensor = self.network(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)
        if not self.both_orders:
            return output
        other: Tensor = self.network(input_ids_b_BT, lengths_b_B, input_ids_a_BS, lengths_a_B)
        # The logarithm of the mean; `logaddexp` is exported as log(exp + exp), which is -inf for two unlikely classes.
        larger, gap = torch.maximum(output, other), (output - other).abs()
        return larger + torch.log1p(torch.exp(-gap)) - math.log(2.0)

    def score(self, left: Batch, right: Batch) -> Tensor:
        """`forward` on the model's own device."""
        device = self.embedding.weight.device
        ids_a, lengths_a, ids_b, lengths_b = (each.to(device) for each in (*left, *right))
        return self(ids_a, lengths_a, ids_b, lengths_b)
