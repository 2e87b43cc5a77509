"""Rows of the papers' supervised tables, and the recipe of a row on a task.

Common settings: words of the distilled table, batch 25, at most 10 epochs and the epoch with the best development
score. Noise, where a row has it, is dropout 0.2, word dropout 0.2, scrambling 0.5; penalties are within
the ranges the papers tuned over. Departures and scores: docs/papers/gran.md and paragram_phrase.md.
"""

from dataclasses import dataclass

from training.models import ArchitectureConfig, GRANConfig, LSTMConfig, RNNConfig, WordAveragingConfig
from training.objectives.regularisers import NO_PENALTY, RegulariserConfig
from training.objectives.supervised import SupervisedConfig
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.recipes.sources.labelled import SSTSentences
from training.recipes.sources.rated import SickPairs, STSSplitPairs
from training.recipes.word_averaging import MINILM, ROW_SCALE, SUPERVISED_SCALE

RATINGS_STS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
TOWARDS_START = RegulariserConfig(universal=1e-4, words=1e-5)  # of the "universal" runs
DROPOUT, WORD_DROPOUT, SCRAMBLE = 0.2, 0.2, 0.5  # of the range tuned over; dropout 0.4 was worse on both dev parts
AVERAGE, LAST, MEAN = WordAveragingConfig(), LSTMConfig(), LSTMConfig(pooling="mean")


@dataclass(frozen=True)
class SupervisedRow:
    """One row of a table; `papers/tables` has the figures that the paper prints for it."""

    name: str
    architecture: ArchitectureConfig
    scramble: float = 0.0
    start: str | None = None  # a transfer run, towards which the run is regularised ("universal")


def _embedding_scale(row: SupervisedRow) -> float:
    if row.start is None:
        return SUPERVISED_SCALE
    # The transfer runs have scaled their rows; only averaging is unaffected by the scale.
    return SUPERVISED_SCALE / ROW_SCALE if isinstance(row.architecture, WordAveragingConfig) else 1.0


def row_recipe(name: str, row: SupervisedRow, data: SickPairs | STSSplitPairs | SSTSentences) -> Recipe:
    """A row under one task, trained alone: similarity of STS or SICK, or sentiment."""
    recurrent = isinstance(row.architecture, RNNConfig | LSTMConfig | GRANConfig)
    regulariser = NO_PENALTY if row.start is None else TOWARDS_START
    classes = RATINGS_STS if isinstance(data, STSSplitPairs) else SupervisedConfig.classes
    return Recipe(
        name=name,
        reaches="the paper's figure in papers/tables",
        table=MINILM,
        architecture=row.architecture,
        data=data,
        objective=SupervisedConfig(classes=classes, regulariser=regulariser, scramble=row.scramble),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=10, batch_size=25, patience=3),
        start=row.start,
        row_scale=_embedding_scale(row),
        precision="bfloat16" if recurrent else "float32",
    )
