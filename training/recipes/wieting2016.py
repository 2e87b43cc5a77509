"""Transfer runs of Wieting et al. (2016), Table 2: every encoder under the margin loss, settings of the release.

The paper trains on PPDB phrase pairs for 10 epochs; here the pairs are the 160,000 sentence pairs all encoders are
compared on, for 5 epochs, for 1 where the encoder is recurrent. The release multiplies its penalties by 1/2, the
paper does not: lambda_c and lambda_w below are those of the release, halved. Embeddings are as wide as the words: 256,
the paper's 300.
"""

from training.architectures import (
    ArchitectureConfig,
    DANConfig,
    LSTMConfig,
    ProjectionConfig,
    RNNConfig,
    WordAveragingConfig,
)
from training.loop import Schedule
from training.losses import Negatives
from training.objectives.transfer import MarginConfig
from training.optimisers import OptimiserConfig
from training.recipe import ParaphrasePairs, Recipe
from training.recipes.word_averaging import MINILM, ROW_SCALE
from training.regularisers import RegulariserConfig


def _transfer(
    name: str,
    architecture: ArchitectureConfig,
    reaches: str,
    optimiser: OptimiserConfig,
    regulariser: RegulariserConfig,
    *,
    batch_size: int = 100,
    negatives: Negatives = "max",
) -> Recipe:
    recurrent = isinstance(architecture, RNNConfig | LSTMConfig)
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=ParaphrasePairs(limit=160_000),
        objective=MarginConfig(margin=0.4, negatives=negatives, regulariser=regulariser),
        optimiser=optimiser,
        schedule=Schedule(epochs=1 if recurrent else 5, batch_size=batch_size, patience=2),
        row_scale=ROW_SCALE,
        precision="bfloat16" if recurrent else "float32",
    )


def _adam(rate: float, clip: float | None = None) -> OptimiserConfig:
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=rate, clip=clip)


def averaging() -> Recipe:
    """PARAGRAM-PHRASE."""
    return _transfer(
        "pp-avg",
        WordAveragingConfig(),
        "the paper's mean of the 22 sets: 65.7; 20 s an epoch on one core",
        _adam(5e-3, clip=1.0),
        RegulariserConfig(words=0.5e-6),
    )


def projection() -> Recipe:
    """Averaging and one linear projection."""
    return _transfer(
        "pp-projection",
        ProjectionConfig(),
        "the paper's mean of the 22 sets: 66.0; 30 s an epoch on one core",
        _adam(5e-4),
        RegulariserConfig(composition=0.5e-5, words=0.5e-8),
    )


def dan() -> Recipe:
    """Deep averaging network: one tanh layer, AdaGrad."""
    return _transfer(
        "pp-dan",
        DANConfig(layers=1, activation="tanh"),
        "the paper's mean of the 22 sets: 63.7; 30 s an epoch on one core",
        OptimiserConfig("adagrad", learning_rate=0.05, embedding_learning_rate=0.05),
        RegulariserConfig(composition=0.5e-5, words=0.5e-5),
    )


def rnn() -> Recipe:
    """Simple recurrent network, tanh, with MIX negatives."""
    return _transfer(
        "pp-rnn",
        RNNConfig("tanh"),
        "the paper's mean of the 22 sets: 52.6; 1 minute an epoch on one core",
        _adam(5e-4),
        RegulariserConfig(composition=0.5e-4, words=0.5e-6),
        negatives="mix",
    )


def identity_rnn() -> Recipe:
    """The RNN that starts as word averaging and is regularised towards that start."""
    return _transfer(
        "pp-irnn",
        RNNConfig("identity"),
        "the paper's mean of the 22 sets: 65.7; 1 minute an epoch on one core",
        _adam(5e-3, clip=1.0),
        RegulariserConfig(universal=5.0, words=0.5e-6),
    )


def lstm() -> Recipe:
    """LSTM with peepholes and an output gate."""
    return _transfer(
        "pp-lstm",
        LSTMConfig(),
        "the paper's mean of the 22 sets: 49.2; 2 minutes an epoch on one core",
        _adam(5e-4),
        RegulariserConfig(composition=0.5e-3, words=0.5e-6),
    )


def lstm_without_output_gate() -> Recipe:
    """The same without the output gate, which the paper found to help."""
    return _transfer(
        "pp-lstm-no-gate",
        LSTMConfig(output_gate=False),
        "the paper's mean of the 22 sets: 55.7; 3 minutes an epoch on one core",
        _adam(5e-4),
        RegulariserConfig(composition=0.5e-3, words=0.5e-6),
        batch_size=50,
    )
