"""Supervised runs: Tables 5, 6 and 8 of Wieting & Gimpel (2017), and Tables 5 and 6 of Wieting et al. (2016).

Each row is data; `RECIPES` holds a recipe of every row for every task. Common settings: words of the distilled table,
batch 25, at most 10 epochs (20 for features, as in the paper) and the epoch with the best development score. Rates of
noise, where a row has that noise, are dropout 0.2, word dropout 0.2, scrambling 0.5;
penalties lie in the ranges the papers tuned over. Departures and scores: docs/papers/gran.md and paragram_phrase.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from training.architectures import (
    ArchitectureConfig,
    DANConfig,
    GRANConfig,
    LSTMConfig,
    ProjectionConfig,
    RNNConfig,
    WordAveragingConfig,
)
from training.loop import Schedule
from training.objectives.sentiment import SentimentConfig
from training.objectives.supervised import SupervisedConfig
from training.optimisers import OptimiserConfig
from training.recipe import Recipe, SickPairs, SSTSentences, STSSplitPairs
from training.recipes import wieting2016
from training.recipes.word_averaging import MINILM
from training.recipes.word_averaging import ROW_SCALE as TRANSFER_SCALE
from training.regularisers import NO_PENALTY, RegulariserConfig

RATINGS_STS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
TOWARDS_START = RegulariserConfig(universal=1e-4, words=1e-5)  # of the "universal" runs
L2 = RegulariserConfig(composition=1e-5, words=1e-6)  # of the runs of 2016, which always have some
DROPOUT, WORD_DROPOUT, SCRAMBLE = 0.2, 0.2, 0.5  # of the range tuned over; dropout 0.4 was worse on both dev parts
# Longer than for transfer: the head wants large products of embeddings. Chosen on the dev parts (docs/papers/gran.md).
ROW_SCALE = 16.0


@dataclass(frozen=True)
class SupervisedRow:
    """One row of a table and the figures the paper prints for it, in the order of its tasks; None: not in the paper."""

    name: str
    label: str
    architecture: ArchitectureConfig
    paper: tuple[float | None, ...]
    scramble: float = 0.0
    start: str | None = None  # a transfer run, which the run also stays near: "universal"


def _noisy(
    name: str, label: str, plain: ArchitectureConfig, paper: dict[str, tuple[float, float]]
) -> tuple[SupervisedRow, ...]:
    """The rows of an encoder in Table 5; `paper`: STS and SICK by what regularises it."""
    rows = []
    for regularised, figures in paper.items():
        noises = regularised.split(", ")
        architecture = replace(
            plain,
            dropout=DROPOUT if "dropout" in noises else 0.0,
            word_dropout=WORD_DROPOUT if "word dropout" in noises else 0.0,
        )
        suffix = "" if regularised == "none" else "-" + "-".join(noises).replace(" ", "-")
        scramble = SCRAMBLE if "scrambling" in noises else 0.0
        rows.append(SupervisedRow(name + suffix, f"{label}, {regularised}", architecture, figures, scramble))
    return tuple(rows)


AVERAGE, LAST, MEAN = WordAveragingConfig(), LSTMConfig(), LSTMConfig(pooling="mean")
# Paper figures: Pearson r x 100 on the STS split and on SICK.
GRAN_TABLE_5 = (
    *_noisy("avg", "AVG", AVERAGE, {"none": (79.2, 85.2), "dropout": (80.7, 84.5), "word dropout": (79.3, 81.8)}),
    *_noisy(
        "lstm",
        "LSTM",
        LAST,
        {
            "none": (68.4, 80.9),
            "dropout": (69.6, 81.3),
            "word dropout": (68.0, 76.4),
            "scrambling": (74.2, 84.4),
            "dropout, scrambling": (75.0, 84.2),
        },
    ),
    *_noisy(
        "lstm-avg",
        "LSTM-AVG",
        MEAN,
        {
            "none": (69.0, 79.5),
            "dropout": (69.2, 79.4),
            "word dropout": (65.6, 76.1),
            "scrambling": (76.5, 83.2),
            "dropout, scrambling": (76.5, 84.0),
        },
    ),
    *_noisy(
        "gran",
        "GRAN",
        GRANConfig(),
        {
            "none": (79.7, 85.2),
            "dropout": (79.7, 84.6),
            "word dropout": (77.3, 83.0),
            "scrambling": (81.4, 85.3),
            "dropout, scrambling": (81.6, 85.1),
        },
    ),
)


def _variant(name: str, label: str, architecture: ArchitectureConfig, *paper: float | None) -> SupervisedRow:
    noisy = replace(architecture, dropout=DROPOUT)
    return SupervisedRow(name, f"{label}, dropout, scrambling", noisy, paper, SCRAMBLE)


GRAN_TABLE_6 = (
    _variant("gran-2", "GRAN-2", GRANConfig(variant=2), 77.4, 85.1),
    _variant("gran-3", "GRAN-3", GRANConfig(variant=3), 81.3, 85.4),
    _variant("gran-4", "GRAN-4", GRANConfig(variant=4), 80.1, 85.5),
    _variant("gran-5", "GRAN-5", GRANConfig(variant=5), 70.9, 83.0),
    _variant("bigran", "BiGRAN (sum)", GRANConfig(bidirectional=True), None, None),
    _variant("bilstm-avg", "BiLSTM-AVG (sum)", replace(MEAN, bidirectional=True), None, None),
)


def _universal(
    name: str, label: str, plain: ArchitectureConfig, start: str, *paper: float, scramble: float
) -> SupervisedRow:
    noisy = replace(plain, dropout=DROPOUT)
    return SupervisedRow(f"{name}-universal", f"{label}, universal", noisy, paper, scramble, start)


GRAN_TABLE_8 = (
    _universal("avg", "AVG, dropout", AVERAGE, "gran-avg", 82.9, 85.6, scramble=0.0),
    _universal(
        "lstm-avg", "LSTM-AVG, dropout, scrambling", MEAN, "gran-lstm-avg-regularised", 81.3, 85.2, scramble=SCRAMBLE
    ),
    _universal("gran", "GRAN, dropout, scrambling", GRANConfig(), "gran-1", 82.7, 86.0, scramble=SCRAMBLE),
)

# Paper figures: SICK r x 100, SICK entailment accuracy, SST accuracy.
WIETING_TABLE_5 = (
    SupervisedRow("avg", "word averaging", AVERAGE, (86.40, 84.6, 83.0)),
    SupervisedRow("projection", "projection", ProjectionConfig(), (85.93, 84.0, 83.0)),
    SupervisedRow("dan", "DAN", DANConfig(layers=1, activation="tanh"), (85.96, 84.5, 83.4)),
    SupervisedRow("rnn", "RNN", RNNConfig("tanh"), (73.13, 76.4, 86.5)),
    SupervisedRow("lstm-no-gate", "LSTM, no output gate", LSTMConfig(output_gate=False), (85.45, 83.2, 86.6)),
    SupervisedRow("lstm", "LSTM, output gate", LAST, (83.41, 82.0, 89.2)),
)
WIETING_UNIVERSAL_SICK = SupervisedRow(
    "avg-universal", "word averaging, universal", AVERAGE, (86.84, 85.3), start="pp-avg"
)
WIETING_UNIVERSAL_SST = SupervisedRow("lstm-universal", "LSTM, universal", LAST, (86.9,), start="pp-lstm")
WIETING_TABLE_6 = (
    SupervisedRow("256", "256 dimensions (the paper's 300)", AVERAGE, (82.15, 80.2, 79.7), start="pp-avg"),
    *(
        SupervisedRow(
            str(width), f"{width} dimensions", ProjectionConfig(outputs=width), paper, start=f"pp-projection-{width}"
        )
        for width, paper in ((1200, (82.85, 80.1, 78.8)), (2400, (84.94, 83.1, 79.4)))
    ),
)


def _row_scale(row: SupervisedRow) -> float:
    if row.start is None:
        return ROW_SCALE
    # The transfer runs have scaled theirs; only averaging means the same whatever the length of its words.
    return ROW_SCALE / TRANSFER_SCALE if isinstance(row.architecture, WordAveragingConfig) else 1.0


def _recipe(name: str, row: SupervisedRow, data: SickPairs | STSSplitPairs | SSTSentences) -> Recipe:
    """A row under one task, trained alone: similarity of STS or SICK, or sentiment."""
    recurrent = isinstance(row.architecture, RNNConfig | LSTMConfig | GRANConfig)
    regulariser = NO_PENALTY if row.start is None else TOWARDS_START
    classes = RATINGS_STS if isinstance(data, STSSplitPairs) else SupervisedConfig.classes
    return Recipe(
        name=name,
        reaches=f"{row.label}: the paper's {' / '.join(str(f) for f in row.paper if f is not None) or '(none)'}",
        table=MINILM,
        architecture=row.architecture,
        data=data,
        objective=SupervisedConfig(classes=classes, regulariser=regulariser, scramble=row.scramble),
        optimiser=OptimiserConfig("adam", learning_rate=1e-3, embedding_learning_rate=1e-3),
        schedule=Schedule(epochs=10, batch_size=25, patience=3),
        start=row.start,
        row_scale=_row_scale(row),
        precision="bfloat16" if recurrent else "float32",
    )


def sts(row: SupervisedRow) -> Recipe:
    """A row of the 2017 paper on the STS split."""
    return _recipe(f"sts-{row.name}", row, STSSplitPairs())


def sick(row: SupervisedRow) -> Recipe:
    """A row of the 2017 paper on SICK similarity."""
    return _recipe(f"sick-{row.name}", row, SickPairs())


def sick_both(row: SupervisedRow) -> Recipe:
    """A row of the 2016 paper on SICK: similarity and entailment, trained together on one encoder."""
    regulariser = L2 if row.start is None else TOWARDS_START
    objective = SupervisedConfig(entailment_weight=1.0, regulariser=regulariser)
    return replace(_recipe(f"pp-sick-{row.name}", row, SickPairs()), objective=objective)


def sentiment(row: SupervisedRow) -> Recipe:
    """A row of the 2016 paper on SST."""
    objective = SentimentConfig(regulariser=L2 if row.start is None else TOWARDS_START)
    return replace(_recipe(f"pp-sst-{row.name}", row, SSTSentences()), objective=objective)


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


def wide_projection(width: int) -> Recipe:
    """The transfer run whose wide sentence vectors are the features of Table 6."""
    return replace(
        wieting2016.projection(),
        name=f"pp-projection-{width}",
        reaches=f"the start of features-sick-{width} and features-sst-{width}",
        architecture=ProjectionConfig(outputs=width),
    )


GRAN_ROWS = (*GRAN_TABLE_5, *GRAN_TABLE_6, *GRAN_TABLE_8)
ALL = (
    *(make(row) for row in GRAN_ROWS for make in (sts, sick)),
    *(sick_both(row) for row in (*WIETING_TABLE_5, WIETING_UNIVERSAL_SICK)),
    *(sentiment(row) for row in (*WIETING_TABLE_5, WIETING_UNIVERSAL_SST)),
    wide_projection(1200),
    wide_projection(2400),
    *(as_features(make(row)) for row in WIETING_TABLE_6 for make in (sick_both, sentiment)),
)


def _always(recipe: Recipe) -> Callable[[], Recipe]:
    return lambda: recipe


RECIPES: dict[str, Callable[[], Recipe]] = {recipe.name: _always(recipe) for recipe in ALL}
