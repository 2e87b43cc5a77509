"""Supervised tables of both papers, of the rows that training/recipes/supervised.py declares with their figures."""

from dataclasses import replace

from training.recipes import supervised
from training.recipes.supervised import SupervisedRow
from training.reproductions.papers import STS_SPLIT_COLUMN
from training.reproductions.table import Column, Order, PaperFigure, PaperTable, Row

STS, SICK, ENTAILMENT, SST = STS_SPLIT_COLUMN.name, "SICK", "SICK entailment", "SST"
_COLUMNS = {
    STS: STS_SPLIT_COLUMN,
    SICK: Column(SICK, "SICK", "test", "pearson"),
    ENTAILMENT: Column(ENTAILMENT, "SICK", "test", "accuracy"),
    SST: Column(SST, "SST", "test", "accuracy"),
}


def _row(row: SupervisedRow, recipes: tuple[str, ...], columns: tuple[str, ...], note: str = "") -> Row:
    paper = {name: PaperFigure(value) for name, value in zip(columns, row.paper, strict=True) if value is not None}
    return Row(recipes[0], row.label, paper, note, others=recipes[1:])


def _of_2017(row: SupervisedRow) -> Row:
    recipes = (supervised.sts(row).name, supervised.sick(row).name)
    return _row(row, recipes, (STS, SICK))


def _both(better: str, worse: str) -> tuple[Order, ...]:
    """Claims by STS and by SICK; rows go by their first recipe."""
    return tuple(Order(f"sts-{better}", f"sts-{worse}", column) for column in (STS, SICK))


_NOTE_2017 = "Pearson r x 100 on the papers' 40/10/50 split of STS 2012-2015 (drawn anew) and on SICK."
# Table 6 takes the better regulariser for each task.
_BEST = tuple(
    replace(row, paper=(81.6, 85.3)) for row in supervised.GRAN_TABLE_5 if row.name == "gran-dropout-scrambling"
)
_PLAIN = tuple(
    row
    for row in supervised.GRAN_TABLE_5
    if row.name in ("avg-dropout", "lstm-avg-dropout-scrambling", "gran-dropout-scrambling")
)

GRAN_TABLE_5 = PaperTable(
    name="gran-table5",
    title="Wieting & Gimpel (2017), Table 5: supervised, every encoder and regulariser",
    columns=(_COLUMNS[STS], _COLUMNS[SICK]),
    rows=tuple(map(_of_2017, supervised.GRAN_TABLE_5)),
    note=_NOTE_2017,
    orders=(
        *_both("lstm-dropout-scrambling", "lstm"),
        *_both("lstm-avg-dropout-scrambling", "lstm-avg"),
        *_both("avg-dropout", "lstm-dropout-scrambling"),
        *_both("gran-dropout-scrambling", "avg-dropout"),
        *_both("gran-dropout-scrambling", "lstm-avg-dropout-scrambling"),
    ),
)
GRAN_TABLE_6 = PaperTable(
    name="gran-table6",
    title="Wieting & Gimpel (2017), Table 6: supervised, gated averaging networks",
    columns=(_COLUMNS[STS], _COLUMNS[SICK]),
    rows=tuple(map(_of_2017, (*_BEST, *supervised.GRAN_TABLE_6))),
    note=_NOTE_2017,
    orders=tuple(Order("sts-gran-dropout-scrambling", f"sts-gran-{variant}", STS) for variant in (2, 3, 4, 5)),
)
GRAN_TABLE_8 = PaperTable(
    name="gran-table8",
    title="Wieting & Gimpel (2017), Table 8: supervised, started from the transfer models",
    columns=(_COLUMNS[STS], _COLUMNS[SICK]),
    rows=tuple(map(_of_2017, (*_PLAIN, *supervised.GRAN_TABLE_8))),
    note=_NOTE_2017,
    orders=(
        *_both("avg-universal", "avg-dropout"),
        *_both("lstm-avg-universal", "lstm-avg-dropout-scrambling"),
        *_both("gran-universal", "gran-dropout-scrambling"),
    ),
)


def _of_2016(row: SupervisedRow) -> Row:
    recipes = (supervised.sick_both(row).name, supervised.sentiment(row).name)
    return _row(row, recipes, (SICK, ENTAILMENT, SST))


WIETING_TABLE_5 = PaperTable(
    name="wieting2016-table5",
    title="Wieting et al. (2016), Table 5: supervised, every encoder",
    columns=(_COLUMNS[SICK], _COLUMNS[ENTAILMENT], _COLUMNS[SST]),
    rows=(
        *map(_of_2016, supervised.WIETING_TABLE_5),
        _row(
            supervised.WIETING_UNIVERSAL_SICK,
            (supervised.sick_both(supervised.WIETING_UNIVERSAL_SICK).name,),
            (SICK, ENTAILMENT),
        ),
        _row(
            supervised.WIETING_UNIVERSAL_SST,
            (supervised.sentiment(supervised.WIETING_UNIVERSAL_SST).name,),
            (SST,),
        ),
    ),
    note="Pearson r x 100 and accuracies. On SICK one encoder is trained for both tasks, in the paper one for each.",
    orders=(
        Order("pp-sick-avg", "pp-sick-lstm", SICK),
        Order("pp-sick-avg", "pp-sick-lstm", ENTAILMENT),
        Order("pp-sick-avg", "pp-sick-rnn", SICK),
        Order("pp-sick-lstm", "pp-sick-avg", SST),
        Order("pp-sick-avg-universal", "pp-sick-avg", SICK),
        Order("pp-sick-avg-universal", "pp-sick-avg", ENTAILMENT),
    ),
)
WIETING_TABLE_6 = PaperTable(
    name="wieting2016-table6",
    title="Wieting et al. (2016), Table 6: frozen sentence vectors as features",
    columns=(_COLUMNS[SICK], _COLUMNS[ENTAILMENT], _COLUMNS[SST]),
    rows=tuple(
        _row(
            row,
            tuple(supervised.as_features(make(row)).name for make in (supervised.sick_both, supervised.sentiment)),
            (SICK, ENTAILMENT, SST),
        )
        for row in supervised.WIETING_TABLE_6
    ),
    orders=(
        Order("features-sick-2400", "features-sick-256", SICK),
        Order("features-sick-2400", "features-sick-256", ENTAILMENT),
    ),
)
