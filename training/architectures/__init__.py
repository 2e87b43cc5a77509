"""Architectures by name: one file per paper idea."""

from typing import ClassVar, Protocol

from torch import Tensor, nn

from contract.manifest import Matrix
from training.architectures.dan import DAN, DANConfig
from training.architectures.gran import GRAN, GRANConfig
from training.architectures.lstm import LSTMConfig, LSTMEncoder
from training.architectures.mgim import MGIM, MGIMConfig
from training.architectures.projection import Projection, ProjectionConfig
from training.architectures.pwim import PWIM, PWIMConfig, PWIMTasks, PWIMTasksConfig
from training.architectures.rnn import RNNConfig, RNNEncoder
from training.architectures.transformer import CrossEncoder, CrossEncoderConfig
from training.architectures.word_averaging import WordAveraging, WordAveragingConfig

ArchitectureConfig = WordAveragingConfig | ProjectionConfig | DANConfig | RNNConfig | LSTMConfig | GRANConfig
InteractionConfig = PWIMConfig | MGIMConfig
HeadsConfig = CrossEncoderConfig | PWIMTasksConfig
PairWithHeads = CrossEncoder | PWIMTasks  # ids and lengths of both sentences -> the raw outputs of each head [B, K]


class InteractionNetwork(Protocol):
    """Both sentences in, log-probabilities of classes out; ids and lengths only, so that it can be exported."""

    MATRICES: ClassVar[tuple[Matrix, ...]]  # of `matrices`, in order
    embedding: nn.Module

    def __call__(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids [B, S], [B, T] and lengths [B] of both -> log-probabilities [B, K]."""

    def matrices(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """The same -> `MATRICES` [B, M, S, T], zero on the padding."""


def build_interaction(config: InteractionConfig, embedding: nn.Module, outputs: int) -> nn.Module:
    """The interaction network a config describes, around an embedding of words."""
    match config:
        case PWIMConfig():
            return PWIM(config, embedding, outputs)
        case MGIMConfig():
            return MGIM(config, embedding, outputs)


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
    "MGIM",
    "PWIM",
    "ArchitectureConfig",
    "CrossEncoder",
    "CrossEncoderConfig",
    "DANConfig",
    "GRANConfig",
    "HeadsConfig",
    "InteractionConfig",
    "InteractionNetwork",
    "LSTMConfig",
    "LSTMEncoder",
    "MGIMConfig",
    "PWIMConfig",
    "PWIMTasks",
    "PWIMTasksConfig",
    "PairWithHeads",
    "Projection",
    "ProjectionConfig",
    "RNNConfig",
    "RNNEncoder",
    "WordAveraging",
    "WordAveragingConfig",
    "build_encoder",
    "build_interaction",
]
