"""Figures that the papers print per test set, and their means over the sets in the data folder.

Pearson r x 100. Wieting et al. (2016), Tables 2 and 4; Wieting & Gimpel (2017), Table 4. STS 2013 SMT and Twitter
(PIT-2015) are left out of all means.
"""

from training.recipes.rows import SupervisedRow
from training.results.reproductions.table import Column, PaperFigure, Row

# In the order of the sets below.
SETS: tuple[tuple[str, str], ...] = (
    *(("STS 2012", name) for name in ("MSRpar", "MSRvid", "SMTeuroparl", "OnWN", "SMTnews")),
    *(("STS 2013", name) for name in ("headlines", "OnWN", "FNWN")),
    *(("STS 2014", name) for name in ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news")),
    *(("STS 2015", name) for name in ("answers-forums", "answers-students", "belief", "headlines", "images")),
    ("SICK", "test"),
)
YEARS = ("STS 2012", "STS 2013", "STS 2014", "STS 2015")
ALL = "mean of 20"
PRINTED: dict[str, tuple[float, ...]] = {
    "GloVe": (
        47.7, 63.9, 46.0, 55.1, 49.6,  63.8, 49.0, 34.2,  27.1, 68.0, 59.5, 61.0, 58.4, 51.2,
        30.5, 63.0, 40.5, 61.8, 67.5,  65.9,
    ),
    "skip-thought": (
        16.8, 41.7, 35.2, 29.7, 30.8,  34.6, 10.0, 30.4,  12.9, 23.5, 37.8, 51.2, 23.3, 39.9,
        36.1, 33.0, 24.6, 43.6, 17.7,  49.8,
    ),
    "median of the systems": (
        51.5, 75.5, 44.4, 60.8, 40.1,  64.0, 52.8, 32.7,  36.6, 66.2, 67.1, 75.6, 78.0, 64.7,
        61.3, 67.6, 67.7, 74.2, 80.4,  71.4,
    ),
    "their 75th percentile": (
        57.6, 80.3, 48.1, 65.9, 45.4,  68.3, 64.8, 38.1,  46.8, 74.0, 75.4, 79.0, 81.1, 72.2,
        68.2, 73.6, 72.2, 80.8, 84.3,  79.9,
    ),
    "the best of them": (
        73.4, 88.0, 56.7, 72.7, 60.9,  78.4, 84.3, 58.2,  53.1, 78.5, 78.4, 83.4, 87.5, 79.2,
        73.9, 78.8, 77.2, 84.2, 87.1,  82.8,
    ),
    "PARAGRAM-SL999": (
        41.6, 60.0, 42.4, 63.0, 57.0,  68.8, 48.0, 37.9,  37.2, 67.0, 65.3, 62.0, 61.1, 64.7,
        38.8, 69.2, 53.2, 69.0, 69.9,  66.4,
    ),
    "PP": (
        42.6, 74.5, 47.3, 70.6, 58.4,  72.4, 67.7, 43.9,  48.7, 73.1, 69.7, 78.5, 78.8, 76.4,
        68.3, 78.2, 76.2, 74.8, 81.4,  71.6,
    ),
    "projection": (
        43.7, 74.0, 49.4, 70.1, 62.8,  72.6, 68.0, 46.8,  51.1, 72.2, 70.8, 78.1, 79.5, 75.8,
        65.1, 77.8, 75.4, 75.2, 80.3,  71.6,
    ),
    "DAN": (
        40.3, 70.0, 43.8, 65.9, 60.0,  71.2, 64.1, 43.1,  49.0, 71.7, 69.2, 76.9, 75.7, 74.2,
        62.6, 78.1, 72.0, 73.5, 77.5,  70.7,
    ),
    "RNN": (
        18.6, 66.5, 40.9, 63.1, 51.3,  59.5, 54.6, 30.9,  41.5, 53.7, 57.5, 67.6, 67.7, 58.0,
        32.8, 64.7, 51.9, 65.3, 71.4,  61.2,
    ),
    "iRNN": (
        43.4, 73.4, 47.1, 70.1, 58.1,  72.8, 69.4, 45.3,  49.0, 72.4, 70.2, 78.2, 78.8, 76.9,
        67.4, 78.2, 75.9, 75.1, 81.1,  71.2,
    ),
    "LSTM without output gate": (
        16.1, 71.3, 41.8, 65.2, 60.8,  57.4, 68.5, 24.7,  44.2, 52.8, 57.5, 68.5, 76.9, 58.7,
        51.9, 71.5, 61.7, 64.0, 70.4,  63.9,
    ),
    "LSTM": (
        9.3, 71.3, 44.3, 56.4, 51.0,  48.5, 50.4, 38.4,  46.1, 39.1, 50.9, 62.9, 61.7, 48.2,
        50.7, 55.7, 52.6, 56.6, 64.2,  59.0,
    ),
    "PP-XXL": (
        44.8, 79.6, 49.5, 70.4, 63.3,  73.9, 73.8, 47.7,  53.4, 74.4, 71.5, 80.4, 81.5, 77.4,
        69.1, 78.0, 78.2, 76.4, 83.4,  72.7,
    ),
    "GRAN paper LSTM-AVG": (
        49.0, 84.3, 51.2, 71.5, 68.0,  77.3, 81.2, 53.2,  56.6, 78.0, 74.5, 84.7, 84.9, 76.3,
        71.8, 71.1, 75.3, 79.5, 85.8,  71.3,
    ),
    "GRAN paper AVG": (
        45.9, 85.1, 47.5, 71.2, 58.2,  76.9, 72.8, 50.2,  55.6, 78.5, 75.1, 85.6, 81.4, 78.7,
        70.6, 75.8, 76.8, 80.3, 86.0,  72.4,
    ),
    "GRAN paper GRAN": (
        47.7, 85.2, 49.3, 71.5, 58.7,  76.1, 81.4, 55.6,  55.7, 77.1, 72.8, 85.8, 85.1, 78.7,
        73.1, 72.9, 78.0, 78.6, 85.8,  72.9,
    ),
}  # fmt: skip

YEAR_COLUMNS = tuple(Column(year, year, "mean of sets", "pearson") for year in YEARS)
SICK_COLUMN = Column("SICK", "SICK", "test", "pearson")
R, RHO, MSE, ACCURACY = "SICK r", "SICK rho", "SICK MSE", "SICK accuracy"
SICK_COLUMNS = (  # the SemEval-2014 measures, r and rho as fractions
    Column(R, "SICK", "test", "pearson", scale=1, digits=4),
    Column(RHO, "SICK", "test", "spearman", scale=1, digits=4),
    Column(MSE, "SICK", "test", "mse", scale=1, digits=4, lower_is_better=True),
    Column(ACCURACY, "SICK", "test", "accuracy"),
)
MEAN_COLUMN = Column(ALL, "transfer", "mean of sets", "pearson")
STS_SPLIT_COLUMN = Column("STS split", "STS 2012-2015 split", "test", "pearson")
TRANSFER = (*YEAR_COLUMNS, SICK_COLUMN, MEAN_COLUMN)
OVER_22 = Column("mean of 22", "transfer of the papers", "mean of sets", "pearson")  # theirs only: two sets are missing
SET_COLUMNS = tuple(Column(f"{corpus} {split}", corpus, split, "pearson") for corpus, split in SETS)


def printed(model: str, corpus: str, split: str) -> float | None:
    """A printed figure, or a mean of printed figures over the available sets; corpus and split as in our figures."""
    values = dict(zip(SETS, PRINTED[model], strict=True))
    if split != "mean of sets":
        return values.get((corpus, split))
    chosen = [value for (year, _), value in values.items() if corpus in (year, "transfer")]
    return sum(chosen) / len(chosen) if chosen else None


def printed_in(model: str, columns: tuple[Column, ...]) -> dict[str, PaperFigure]:
    """The paper's figures of a model for the columns of a table that it prints."""
    found = {column.name: printed(model, column.corpus, column.split) for column in columns}
    return {name: PaperFigure(value) for name, value in found.items() if value is not None}


def cited(models: tuple[str, ...]) -> str:
    """What a paper prints of others, as means over the 20 sets."""
    return ", ".join(f"{model} {printed(model, 'transfer', 'mean of sets'):.1f}" for model in models)


STS, SICK, ENTAILMENT, SST = STS_SPLIT_COLUMN.name, "SICK", "SICK entailment", "SST"
TASK_COLUMNS = {
    STS: STS_SPLIT_COLUMN,
    SICK: Column(SICK, "SICK", "test", "pearson"),
    ENTAILMENT: Column(ENTAILMENT, "SICK", "test", "accuracy"),
    SST: Column(SST, "SST", "test", "accuracy"),
}


def supervised_row(row: SupervisedRow, recipes: tuple[str, ...], columns: tuple[str, ...], note: str = "") -> Row:
    """A row of a supervised table; its recipes, and its columns in the order of the paper's figures."""
    paper = {name: PaperFigure(value) for name, value in zip(columns, row.paper, strict=True) if value is not None}
    return Row(recipes[0], row.label, paper, note, others=recipes[1:])
