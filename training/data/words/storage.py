"""Storage of a published model's word vectors: vocabulary size and number format."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from core.tokenizer import Tokenizer
from training.data.words.tables import WordTable

Storage = Literal["int8", "float32"]


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
        self.embedding_dim = rows.shape[1]

    def forward(self, input_ids_BT: Tensor) -> Tensor:
        """Ids [B, T] -> vectors [B, T, D]."""
        gather = nn.functional.embedding  # exported as one Gather; indexing would become GatherND
        return gather(input_ids_BT, self.codes).float() * gather(input_ids_BT, self.scale)


def stored(rows: torch.Tensor, storage: Storage) -> nn.Module:
    """An embedding that stores the rows in that format."""
    return Int8Embedding(rows) if storage == "int8" else nn.Embedding.from_pretrained(rows)


def shrink(table: WordTable, keep: int, texts: list[str]) -> WordTable:
    """The table with only its first (most frequent) words and those of `texts`; pieces and buckets are unchanged."""
    tokenizer = table.tokenizer
    words = len(tokenizer.words)
    needed = {i for text in texts for i in tokenizer.encode(text, 10**6).ids if 0 < i <= words}
    common = [i for i in range(1, words + 1) if i not in needed][: max(keep - len(needed), 0)]
    kept = sorted([*needed, *common])
    smaller = Tokenizer([tokenizer.words[i - 1] for i in kept], tokenizer.pieces, tokenizer.buckets)
    rows = np.concatenate([table.rows[:1], table.rows[kept], table.rows[words + 1 :]])
    return WordTable(smaller, rows)
