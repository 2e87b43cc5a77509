"""SICK models of ours: pre-trained on pairs that a tuned teacher rates, then trained on SICK train for both answers.

They start from the transfer run of the same encoder under the teacher; in no paper, see docs/papers/gran.md.
"""

from dataclasses import replace

from training.architectures import ArchitectureConfig, GRANConfig, LSTMConfig, WordAveragingConfig
from training.loop import Schedule
from training.objectives.supervised import SupervisedConfig
from training.optimisers import OptimiserConfig
from training.recipe import Publication, Recipe, SickPairs, TeacherPairs
from training.recipes.word_averaging import MINILM

HIDDEN = 100  # of both heads, as in avg-sick


def _rated(name: str, architecture: ArchitectureConfig, start: str, *, epochs: int, row_scale: float) -> Recipe:
    """Pre-training: similarity on the teacher's ratings. The head that it learns is kept by the run on SICK."""
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


def avg_rated() -> Recipe:
    """Averaging, on the teacher's ratings."""
    return _rated("avg", WordAveragingConfig(), "avg-paraphrase", epochs=3, row_scale=10.0)


def avg_tuned() -> Recipe:
    """Averaging, on SICK after that."""
    publication = Publication("avg-sick-tuned", "Word averaging, SICK relatedness and entailment", keep_words=40_000)
    return replace(_tuned(avg_rated(), "SICK trial r 0.888, entailment 86.0 %"), publication=publication)


def gran_rated() -> Recipe:
    """GRAN, on the teacher's ratings; its gates were trained for the rows of its start, so these keep their length."""
    return _rated("gran", GRANConfig(), "gran-paraphrase", epochs=2, row_scale=1.0)


def gran_tuned() -> Recipe:
    """GRAN, on SICK after that."""
    return _tuned(gran_rated(), "SICK trial r 0.889, entailment 86.6 %")


def lstm_avg_rated() -> Recipe:
    """LSTM-AVG, on the teacher's ratings."""
    return _rated("lstm-avg", LSTMConfig(pooling="mean"), "lstm-avg-paraphrase", epochs=2, row_scale=1.0)


def lstm_avg_tuned() -> Recipe:
    """LSTM-AVG, on SICK after that."""
    return _tuned(lstm_avg_rated(), "about as much as gran-sick-tuned")
