"""SICK models that are not in the papers: pre-trained on pairs rated by a tuned teacher, then trained on SICK train.

They start from the transfer run of the same encoder with the teacher's loss; see docs/papers/gran.md.
"""

from dataclasses import replace

from training.architectures import ArchitectureConfig, GRANConfig, LSTMConfig, WordAveragingConfig
from training.objectives.supervised import SupervisedConfig
from training.recipes.recipe import OptimiserConfig, Publication, Recipe, Schedule
from training.recipes.word_averaging import MINILM
from training.sources.rated import SickPairs, TeacherPairs

HIDDEN = 100  # of both heads, as in avg-sick


def _rated(name: str, architecture: ArchitectureConfig, start: str, *, epochs: int, row_scale: float) -> Recipe:
    """Pre-training: similarity on the teacher's ratings. The run on SICK keeps its head."""
    return Recipe(
        name=f"{name}-sick-rated",
        reaches=f"the start of {name}-sick-tuned",
        table=MINILM,
        architecture=architecture,
        data=TeacherPairs(),
        objective=SupervisedConfig(hidden=HIDDEN),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=epochs, batch_size=128, decay="linear"),
        start=start,
        row_scale=row_scale,
        precision="float32" if isinstance(architecture, WordAveragingConfig) else "bfloat16",
    )


def _tuned(rated: Recipe, reaches: str) -> Recipe:
    """SICK train itself, relatedness and entailment."""
    return replace(
        rated,
        name=rated.name.replace("-rated", "-tuned"),
        reaches=reaches,
        data=SickPairs(),
        objective=SupervisedConfig(entailment_weight=1.0, hidden=HIDDEN, directed=True),
        optimiser=OptimiserConfig("adam", learning_rate=2e-3, embedding_learning_rate=3e-3),
        schedule=Schedule(epochs=8, batch_size=25, decay="linear"),
        start=rated.name,
        row_scale=1.0,  # the run it starts from has scaled its rows
    )


# The gates of GRAN were trained for word vectors of the length in its start, so these keep it.
_AVG = _rated("avg", WordAveragingConfig(), "avg-paraphrase", epochs=3, row_scale=10.0)
_GRAN = _rated("gran", GRANConfig(), "gran-paraphrase", epochs=2, row_scale=1.0)
_LSTM_AVG = _rated("lstm-avg", LSTMConfig(pooling="mean"), "lstm-avg-paraphrase", epochs=2, row_scale=1.0)
RECIPES = (
    _AVG,
    replace(
        _tuned(_AVG, "SICK trial r 0.888, entailment 86.0 %"),
        publication=Publication("avg-sick-tuned", "Word averaging, SICK relatedness and entailment", keep_words=40_000),
    ),
    _GRAN,
    _tuned(_GRAN, "SICK trial r 0.889, entailment 86.6 %"),
    _LSTM_AVG,
    _tuned(_LSTM_AVG, "about as much as gran-sick-tuned"),
)
