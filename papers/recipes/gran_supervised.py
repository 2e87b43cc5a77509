"""Supervised runs of Wieting & Gimpel (2017): Tables 5, 6 and 8, each row on the STS split and on SICK.

Settings that all rows share: `papers.recipes.rows`. Departures and scores: docs/papers/gran.md.
"""

from collections.abc import Callable
from dataclasses import replace

from papers.recipes.rows import AVERAGE, DROPOUT, LAST, MEAN, SCRAMBLE, WORD_DROPOUT, SupervisedRow, row_recipe
from training.models import GRANConfig, LSTMConfig, WordAveragingConfig
from training.objectives.scrambling import Scrambling
from training.objectives.supervised import SupervisedConfig
from training.recipes.recipe import Recipe
from training.recipes.sources.rated import SickPairs, STSSplitPairs


def _noisy(
    name: str, plain: WordAveragingConfig | LSTMConfig | GRANConfig, *regularised: str
) -> tuple[SupervisedRow, ...]:
    """The rows of an encoder in Table 5, by what regularises them."""
    rows = []
    for noises in ((), *(each.split(", ") for each in regularised)):
        architecture = replace(
            plain,
            dropout=DROPOUT if "dropout" in noises else 0.0,
            word_dropout=WORD_DROPOUT if "word dropout" in noises else 0.0,
        )
        scramble = SCRAMBLE if "scrambling" in noises else 0.0
        rows.append(SupervisedRow("-".join([name, *noises]).replace(" ", "-"), architecture, scramble))
    return tuple(rows)


_ALL = ("dropout", "word dropout", "scrambling", "dropout, scrambling")
TABLE_5 = (
    *_noisy("avg", AVERAGE, *_ALL[:2]),
    *_noisy("lstm", LAST, *_ALL),
    *_noisy("lstm-avg", MEAN, *_ALL),
    *_noisy("gran", GRANConfig(), *_ALL),
)
_OTHERS: tuple[tuple[str, LSTMConfig | GRANConfig], ...] = (
    *((f"gran-{variant}", GRANConfig(variant=variant)) for variant in (2, 3, 5)),
    ("bigran", GRANConfig(bidirectional=True)),
    ("bilstm-avg", replace(MEAN, bidirectional=True)),
)
TABLE_6 = tuple(  # dropout and scrambling
    SupervisedRow(name, replace(architecture, dropout=DROPOUT), SCRAMBLE) for name, architecture in _OTHERS
)
TABLE_8 = (SupervisedRow("avg-universal", replace(AVERAGE, dropout=DROPOUT), start="gran-avg"),)


def sts(row: SupervisedRow) -> Recipe:
    """A row of the 2017 paper on the STS split."""
    return row_recipe(f"sts-{row.name}", row, STSSplitPairs())


def sick(row: SupervisedRow) -> Recipe:
    """A row of the 2017 paper on SICK similarity."""
    return row_recipe(f"sick-{row.name}", row, SickPairs())


def _scrambled(how: Scrambling, rate: float, make: Callable[[SupervisedRow], Recipe]) -> Recipe:
    """LSTM-AVG with scrambling as in footnote 5, which brought the authors nothing."""
    plain = make(SupervisedRow(f"lstm-avg-scrambled-{how}", MEAN, rate))
    assert isinstance(plain.objective, SupervisedConfig)
    return replace(plain, objective=replace(plain.objective, scrambling=how))


_OTHERWISE: dict[Scrambling, float] = {"sentences": SCRAMBLE, "swaps": 1.0}
FOOTNOTE_5 = tuple(_scrambled(how, rate, make) for how, rate in _OTHERWISE.items() for make in (sts, sick))
RECIPES = (*(make(row) for row in (*TABLE_5, *TABLE_6, *TABLE_8) for make in (sts, sick)), *FOOTNOTE_5)
