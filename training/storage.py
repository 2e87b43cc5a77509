"""How a published model keeps its words: which of them, and in what numbers."""

from typing import Literal

import numpy as np
import torch
from torch import nn

from contract.tokenizer import Tokenizer
from training.layers import Float16Embedding, Int8Embedding
from training.tables import WordTable

Storage = Literal["int8", "float16", "float32"]


def stored(rows: torch.Tensor, storage: Storage) -> nn.Module:
    """An embedding that keeps the rows in that form."""
    if storage == "int8":
        return Int8Embedding(rows)
    if storage == "float16":
        return Float16Embedding(rows)
    return nn.Embedding.from_pretrained(rows)


def shrink(table: WordTable, keep: int, texts: list[str]) -> WordTable:
    """The table with its first (most frequent) words only, those of `texts` always kept; pieces and buckets stay."""
    tokenizer = table.tokenizer
    words = len(tokenizer.words)
    needed = {i for text in texts for i in tokenizer.encode(text, 10**6).ids if 0 < i <= words}
    common = [i for i in range(1, words + 1) if i not in needed][: max(keep - len(needed), 0)]
    kept = sorted([*needed, *common])
    smaller = Tokenizer([tokenizer.words[i - 1] for i in kept], tokenizer.pieces, tokenizer.buckets)
    rows = np.concatenate([table.rows[:1], table.rows[kept], table.rows[words + 1 :]])
    return WordTable(smaller, rows)
