"""Architectures by name: one file per paper idea, none importing another."""

from typing import Protocol

from torch import Tensor, nn

from training.architectures.dan import DAN, DANConfig
from training.architectures.gran import GRAN, GRANConfig
from training.architectures.lstm import LSTMConfig, LSTMEncoder
from training.architectures.projection import Projection, ProjectionConfig
from training.architectures.rnn import RNNConfig, RNNEncoder
from training.architectures.word_averaging import WordAveraging, WordAveragingConfig

ArchitectureConfig = WordAveragingConfig | ProjectionConfig | DANConfig | RNNConfig | LSTMConfig | GRANConfig


class SiameseEncoder(Protocol):
    """One sentence in, one embedding out; ids and lengths only, so that it can be exported."""

    embedding: nn.Module
    output_dim: int  # of the sentence embedding, which need not be as wide as the word vectors

    def __call__(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] -> embeddings [B, D]."""


def build_encoder(config: ArchitectureConfig, embedding: nn.Module) -> nn.Module:
    """The encoder a config describes, around an embedding of words.

    Raises:
        ValueError: the config cannot be built around words of that width.
    """
    match config:
        case WordAveragingConfig():
            return WordAveraging(config, embedding)
        case ProjectionConfig():
            return Projection(config, embedding)
        case DANConfig():
            return DAN(config, embedding)
        case RNNConfig():
            return RNNEncoder(config, embedding)
        case LSTMConfig():
            return LSTMEncoder(config, embedding)
        case GRANConfig():
            return GRAN(config, embedding)


__all__ = [
    "DAN",
    "GRAN",
    "ArchitectureConfig",
    "DANConfig",
    "GRANConfig",
    "LSTMConfig",
    "LSTMEncoder",
    "Projection",
    "ProjectionConfig",
    "RNNConfig",
    "RNNEncoder",
    "SiameseEncoder",
    "WordAveraging",
    "WordAveragingConfig",
    "build_encoder",
]
