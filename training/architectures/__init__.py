"""Architectures by name: one file per paper idea, none importing another."""

from typing import Protocol

from torch import Tensor, nn

from training.architectures.word_averaging import WordAveraging, WordAveragingConfig

ArchitectureConfig = WordAveragingConfig  # a union once there are more


class SiameseEncoder(Protocol):
    """One sentence in, one embedding out; ids and lengths only, so that it can be exported."""

    embedding: nn.Module

    def __call__(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] -> embeddings [B, D]."""


def build_encoder(config: ArchitectureConfig, embedding: nn.Module) -> nn.Module:
    """The encoder a config describes, around an embedding of words."""
    return WordAveraging(config, embedding)


__all__ = ["ArchitectureConfig", "SiameseEncoder", "WordAveraging", "WordAveragingConfig", "build_encoder"]
