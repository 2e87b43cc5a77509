"""Networks by name: one file per paper idea, beside the layers and cells that they share. Imports data."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from core.manifest import Matrix
from training.models.averaging import DAN as DAN
from training.models.averaging import DANConfig as DANConfig
from training.models.averaging import Projection as Projection
from training.models.averaging import ProjectionConfig as ProjectionConfig
from training.models.averaging import WordAveraging as WordAveraging
from training.models.averaging import WordAveragingConfig as WordAveragingConfig
from training.models.gran import GRAN as GRAN
from training.models.gran import GRANConfig as GRANConfig
from training.models.lstm import LSTMConfig as LSTMConfig
from training.models.lstm import LSTMEncoder as LSTMEncoder
from training.models.mgim import MGIM as MGIM
from training.models.mgim import MGIMConfig as MGIMConfig
from training.models.pwim import PWIM as PWIM
from training.models.pwim import PWIMConfig as PWIMConfig
from training.models.pwim import PWIMTasks as PWIMTasks
from training.models.pwim import PWIMTasksConfig as PWIMTasksConfig
from training.models.rnn import RNNConfig as RNNConfig
from training.models.rnn import RNNEncoder as RNNEncoder
from training.models.transformer import CrossEncoder as CrossEncoder
from training.models.transformer import CrossEncoderConfig as CrossEncoderConfig

# Of encoders; `additive`: an embedding is the mean of those of its tokens, each by itself.
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


_ENCODERS: Mapping[type, Callable[[Any, nn.Module], nn.Module]] = {
    WordAveragingConfig: WordAveraging,
    ProjectionConfig: Projection,
    DANConfig: DAN,
    RNNConfig: RNNEncoder,
    LSTMConfig: LSTMEncoder,
    GRANConfig: GRAN,
}


def build_interaction(config: InteractionConfig, embedding: nn.Module, outputs: int) -> nn.Module:
    """The interaction network a config describes, around an embedding of words."""
    if isinstance(config, PWIMConfig):
        return PWIM(config, embedding, outputs)
    return MGIM(config, embedding, outputs)


def build_encoder(config: ArchitectureConfig, embedding: nn.Module) -> nn.Module:
    """The encoder a config describes, around an embedding of words.

    Raises:
        ValueError: the config cannot be built around words of that width.
    """
    return _ENCODERS[type(config)](config, embedding)
