"""Wieting et al. (2016): transfer runs (Table 2), supervised runs (Table 5), frozen features (Table 6).

Common settings: `training.recipes.paragram_phrase` of transfer runs, `papers.recipes.rows` of supervised ones.
"""

from dataclasses import replace
from typing import Literal

from papers.recipes.rows import AVERAGE, LAST, TOWARDS_START, SupervisedRow, row_recipe
from training.models import DANConfig, LSTMConfig, ProjectionConfig, RNNConfig, WordAveragingConfig
from training.objectives.regularisers import NO_PENALTY, RegulariserConfig
from training.objectives.sentiment import SentimentConfig
from training.objectives.supervised import SupervisedConfig
from training.objectives.transfer import MarginConfig
from training.recipes.paragram_phrase import adam, transfer
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.recipes.sources.labelled import SSTSentences
from training.recipes.sources.rated import SickPairs
from training.recipes.sources.transfer import ParaphrasePairs
from training.recipes.word_averaging import MINILM

_PENALTY = RegulariserConfig  # lambda_c, lambda_w and lambda_u
TABLE_2 = (
    transfer("pp-avg", WordAveragingConfig(), 65.7, "20 s", adam(5e-3, clip=1.0), _PENALTY(0.0, 0.5e-6)),
    transfer("pp-projection", ProjectionConfig(), 66.0, "30 s", adam(5e-4), _PENALTY(0.5e-5, 0.5e-8)),
    transfer("pp-dan", DANConfig(), 63.7, "30 s", OptimiserConfig("adagrad", 0.05, 0.05), _PENALTY(0.5e-5, 0.5e-5)),
    transfer(*("pp-rnn", RNNConfig("tanh"), 52.6, "1 minute", adam(5e-4), _PENALTY(0.5e-4, 0.5e-6)), negatives="mix"),
    transfer("pp-lstm", LSTMConfig(), 49.2, "2 minutes", adam(5e-4), _PENALTY(0.5e-3, 0.5e-6)),
    transfer(  # which the paper found to help
        *("pp-lstm-no-gate", LSTMConfig(output_gate=False), 55.7, "3 minutes", adam(5e-4)),
        _PENALTY(0.5e-3, 0.5e-6),
        batch_size=50,
    ),
)


def wide_projection(width: int) -> Recipe:
    """The transfer run whose wide sentence vectors are the features of Table 6."""
    return replace(
        TABLE_2[1],
        name=f"pp-projection-{width}",
        reaches=f"the start of features-sick-{width} and features-sst-{width}",
        architecture=ProjectionConfig(outputs=width),
        schedule=Schedule(epochs=5, batch_size=100, patience=2),
    )


L2 = RegulariserConfig(composition=1e-5, words=1e-6)  # of the supervised runs
TABLE_5 = (
    SupervisedRow("avg", AVERAGE),
    SupervisedRow("projection", ProjectionConfig()),
    SupervisedRow("dan", DANConfig()),
    SupervisedRow("rnn", RNNConfig("tanh")),
    SupervisedRow("lstm-no-gate", LSTMConfig(output_gate=False)),
    SupervisedRow("lstm", LAST),
)
UNIVERSAL_SICK = SupervisedRow("avg-universal", AVERAGE, start="pp-avg")
UNIVERSAL_SST = SupervisedRow("lstm-universal", LAST, start="pp-lstm")
TABLE_6 = (
    SupervisedRow("256", AVERAGE, start="pp-avg"),  # the paper's 300
    *(
        SupervisedRow(str(width), ProjectionConfig(outputs=width), start=f"pp-projection-{width}")
        for width in (1200, 2400)
    ),
)


def sick_both(row: SupervisedRow) -> Recipe:
    """A row of the 2016 paper on SICK: similarity and entailment, trained together on one encoder."""
    regulariser = L2 if row.start is None else TOWARDS_START
    objective = SupervisedConfig(entailment_weight=1.0, regulariser=regulariser)
    return replace(row_recipe(f"pp-sick-{row.name}", row, SickPairs()), objective=objective)


# Of a task alone: classes, weight of the labels, rates of the composition and the words, forget bias, scale.
_ALONE = {
    "similarity": (SupervisedConfig.classes, 0.0, (2.2e-3, 4e-3), 2.0, 1.0),
    "entailment": (None, 1.0, (1e-3, 1e-3), 1.0, 4.0),
}


def sick_alone(row: SupervisedRow, task: Literal["similarity", "entailment"]) -> Recipe:
    """A row on one task of SICK, as in the paper, and longer: 20 epochs, forget gates that start open.

    Rates, forget bias and scale of relatedness are the best of twenty settings on SICK trial of the LSTM with its
    output gate; for entailment ten others were no better than those set by hand.
    """
    classes, weight, rates, forget_bias, scale = _ALONE[task]
    architecture = row.architecture
    if isinstance(architecture, LSTMConfig):
        architecture = replace(architecture, forget_bias=forget_bias, scale=scale)
    return replace(
        row_recipe(f"pp-sick-{row.name}-{task}", row, SickPairs()),
        architecture=architecture,
        objective=SupervisedConfig(classes=classes, entailment_weight=weight, regulariser=L2),
        optimiser=OptimiserConfig("adam", learning_rate=rates[0], embedding_learning_rate=rates[1]),
        schedule=Schedule(epochs=20, batch_size=25, patience=5),
    )


def sentiment(row: SupervisedRow) -> Recipe:
    """A row of the 2016 paper on SST."""
    objective = SentimentConfig(regulariser=L2 if row.start is None else TOWARDS_START)
    return replace(row_recipe(f"pp-sst-{row.name}", row, SSTSentences()), objective=objective)


def _searched(row: SupervisedRow, rates: tuple[float, float], row_scale: float) -> Recipe:
    """A row on SST with the best settings on its development part: of 8 for averaging, of 10 for the LSTM."""
    return replace(
        sentiment(row),
        optimiser=OptimiserConfig("adam", learning_rate=rates[0], embedding_learning_rate=rates[1]),
        schedule=Schedule(epochs=15, batch_size=25, patience=3),
        row_scale=row_scale,
    )


SST_SEARCHED = (
    _searched(SupervisedRow("avg-searched", WordAveragingConfig(dropout=0.4)), (2e-3, 1e-3), 16.0),
    _searched(SupervisedRow("lstm-searched", LSTMConfig(dropout=0.4, forget_bias=1.0)), (1e-3, 3e-4), 4.0),
)


def _with_phrases(
    row: SupervisedRow, rates: tuple[float, float], row_scale: float, clip: float | None = None
) -> Recipe:
    """A row on SST that learns the labelled phrases of the training trees too, as Tai et al. (2015).

    Rates and scales of averaging and of the LSTM are those of `SST_SEARCHED`; the others' are set by hand. Batches are
    larger and hold texts of like length, which saves time.
    """
    recurrent = isinstance(row.architecture, RNNConfig | LSTMConfig)
    identity = row.architecture == RNNConfig("identity")
    return replace(
        sentiment(row),
        name=f"pp-sst-{row.name}-phrases",
        data=SSTSentences(phrases=True),
        objective=SentimentConfig(regulariser=TOWARDS_START if identity else L2, pool=50),
        optimiser=OptimiserConfig("adam", learning_rate=rates[0], embedding_learning_rate=rates[1], clip=clip),
        schedule=Schedule(epochs=6, batch_size=256, patience=2),
        row_scale=row_scale,
        precision="bfloat16" if recurrent else "float32",
    )


_OPEN = LSTMConfig(dropout=0.4, forget_bias=1.0)
SST_PHRASES = (
    _with_phrases(SupervisedRow("avg", WordAveragingConfig(dropout=0.4)), (2e-3, 1e-3), 16.0),
    _with_phrases(SupervisedRow("projection", ProjectionConfig()), (1e-3, 1e-3), 16.0),
    _with_phrases(SupervisedRow("dan", DANConfig()), (1e-3, 1e-3), 16.0),
    _with_phrases(SupervisedRow("rnn", RNNConfig("tanh")), (1e-3, 3e-4), 4.0, clip=1.0),
    _with_phrases(SupervisedRow("irnn", RNNConfig("identity")), (1e-4, 1e-3), 16.0, clip=1.0),
    _with_phrases(SupervisedRow("lstm", _OPEN), (1e-3, 3e-4), 4.0),
    _with_phrases(SupervisedRow("lstm-no-gate", replace(_OPEN, output_gate=False)), (1e-3, 3e-4), 4.0),
)


def as_features(recipe: Recipe) -> Recipe:
    """The same run with the encoder frozen: only heads are trained, as they are in the paper for 20 epochs."""
    assert isinstance(recipe.objective, SupervisedConfig | SentimentConfig)
    task, width = recipe.name.split("-")[1:]
    return replace(
        recipe,
        name=f"features-{task}-{width}",
        objective=replace(recipe.objective, regulariser=NO_PENALTY),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=None, heads_only=True),
        schedule=Schedule(epochs=20, batch_size=25),
    )


AVG_RAW = Recipe(  # no training: the baseline of every encoder over these word vectors
    name="avg-raw",
    reaches="what averaging the distilled vectors gives",
    table=MINILM,
    architecture=WordAveragingConfig(),
    data=ParaphrasePairs(limit=160_000),
    objective=MarginConfig(),
    optimiser=OptimiserConfig(),
    schedule=Schedule(epochs=0, batch_size=100),
)

RECIPES = (
    AVG_RAW,
    *TABLE_2,
    *(sick_both(row) for row in (*TABLE_5, UNIVERSAL_SICK)),
    *(sick_alone(row, task) for row in (TABLE_5[0], TABLE_5[-1]) for task in ("similarity", "entailment")),
    *(sentiment(row) for row in (*TABLE_5, UNIVERSAL_SST)),
    *SST_SEARCHED,
    *SST_PHRASES,
    *(wide_projection(width) for width in (1200, 2400)),
    *(as_features(make(row)) for row in TABLE_6 for make in (sick_both, sentiment)),
)
