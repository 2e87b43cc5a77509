"""Layers that several architectures truly share.

Shapes: B batch, T tokens, D embedding dimensions, V token ids.
"""

import torch
from torch import Tensor, nn

from training.tables import Matrix


def mask(lengths_B: Tensor, tokens: int) -> Tensor:
    """Float [B, T]: 1 on real tokens, 0 on padding."""
    return (torch.arange(tokens, device=lengths_B.device)[None, :] < lengths_B[:, None]).float()


class WordEmbedding(nn.Module):
    """Trainable rows [V, D] with sparse gradients, which remember where they started.

    `start` is what the regulariser ||Ww0 - Ww||^2 (Wieting et al. 2016, eq. 2) pulls towards.
    """

    start: Tensor

    def __init__(self, rows: Matrix, *, trainable: bool = True, sparse: bool = True) -> None:
        """Copy the rows; `sparse` gradients touch only the rows of a batch (CPU and Gloo; NCCL has none)."""
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(rows.copy()), requires_grad=trainable)
        self.register_buffer("start", torch.from_numpy(rows.copy()), persistent=False)
        self.sparse = sparse

    def forward(self, input_ids_BT: Tensor) -> Tensor:
        """Ids [B, T] -> vectors [B, T, D]."""
        return nn.functional.embedding(input_ids_BT, self.weight, sparse=self.sparse)

    def distance_from_start(self, input_ids: Tensor) -> Tensor:
        """Sum over the distinct ids of ||row - its start||^2; rows that are not here get no gradient."""
        ids = torch.unique(input_ids)
        return ((self(ids) - self.start[ids]) ** 2).sum()


class Int8Embedding(nn.Module):
    """Rows stored as int8 with one float32 scale each, dequantised after the gather: a quarter of the size."""

    codes: Tensor
    scale: Tensor

    def __init__(self, rows: Tensor) -> None:
        """Quantise float rows [V, D] symmetrically: code = round(127 * value / the row's largest)."""
        super().__init__()
        scale = rows.detach().abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127.0
        self.register_buffer("codes", torch.round(rows.detach() / scale).to(torch.int8))
        self.register_buffer("scale", scale.float())

    def forward(self, input_ids_BT: Tensor) -> Tensor:
        """Ids [B, T] -> vectors [B, T, D]."""
        gather = nn.functional.embedding  # exported as one Gather; indexing would become GatherND
        return gather(input_ids_BT, self.codes).float() * gather(input_ids_BT, self.scale)


class Float16Embedding(nn.Module):
    """Rows stored as float16, widened after the gather: half the size at no measurable cost."""

    rows: Tensor

    def __init__(self, rows: Tensor) -> None:
        """Round float rows [V, D]."""
        super().__init__()
        self.register_buffer("rows", rows.detach().half())

    def forward(self, input_ids_BT: Tensor) -> Tensor:
        """Ids [B, T] -> vectors [B, T, D]."""
        return nn.functional.embedding(input_ids_BT, self.rows).float()
