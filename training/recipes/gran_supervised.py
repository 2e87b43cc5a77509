"""Supervised runs of Wieting & Gimpel (2017): Tables 5, 6 and 8, each row on the STS split and on SICK.

Settings that all rows share: `training.recipes.rows`. Departures and scores: docs/papers/gran.md.
"""

from dataclasses import replace

from training.architectures import ArchitectureConfig, GRANConfig
from training.recipes.recipe import Recipe
from training.recipes.rows import AVERAGE, DROPOUT, LAST, MEAN, SCRAMBLE, WORD_DROPOUT, SupervisedRow, row_recipe
from training.sources.rated import SickPairs, STSSplitPairs


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


# Paper figures: Pearson r x 100 on the STS split and on SICK.
TABLE_5 = (
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


TABLE_6 = (
    _variant("gran-2", "GRAN-2", GRANConfig(variant=2), 77.4, 85.1),
    _variant("gran-3", "GRAN-3", GRANConfig(variant=3), 81.3, 85.4),
    _variant("gran-4", "GRAN-4", GRANConfig(variant=4), 80.1, 85.5),
    _variant("gran-5", "GRAN-5", GRANConfig(variant=5), 70.9, 83.0),
    _variant("gran-ungated", "GRAN without the gate (footnote 2, tanh)", GRANConfig(ungated="tanh"), None, None),
    _variant("bigran", "BiGRAN (sum)", GRANConfig(bidirectional=True), None, None),
    _variant("bilstm-avg", "BiLSTM-AVG (sum)", replace(MEAN, bidirectional=True), None, None),
)


def _universal(
    name: str, label: str, plain: ArchitectureConfig, start: str, *paper: float, scramble: float
) -> SupervisedRow:
    noisy = replace(plain, dropout=DROPOUT)
    return SupervisedRow(f"{name}-universal", f"{label}, universal", noisy, paper, scramble, start)


TABLE_8 = (
    _universal("avg", "AVG, dropout", AVERAGE, "gran-avg", 82.9, 85.6, scramble=0.0),
    _universal(
        "lstm-avg", "LSTM-AVG, dropout, scrambling", MEAN, "gran-lstm-avg-regularised", 81.3, 85.2, scramble=SCRAMBLE
    ),
    _universal("gran", "GRAN, dropout, scrambling", GRANConfig(), "gran-1", 82.7, 86.0, scramble=SCRAMBLE),
)


def sts(row: SupervisedRow) -> Recipe:
    """A row of the 2017 paper on the STS split."""
    return row_recipe(f"sts-{row.name}", row, STSSplitPairs())


def sick(row: SupervisedRow) -> Recipe:
    """A row of the 2017 paper on SICK similarity."""
    return row_recipe(f"sick-{row.name}", row, SickPairs())


RECIPES = tuple(make(row) for row in (*TABLE_5, *TABLE_6, *TABLE_8) for make in (sts, sick))
