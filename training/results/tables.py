"""Tables of the papers and of our own, `analyses/tables/<name>.json`: what is asked for, and what was measured of it.

A file names columns, rows and claims of the kind "GRAN is better than AVG", with the figures that the paper prints (its
means over the sets at hand); these are entered by hand. `collect` writes ours beside them.
"""

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Self

from pydantic import Field, model_validator

from core.manifest import Figure
from training.names import by_name
from training.publishing.figures import FigureFile, value_of
from training.records import CheckedRecord, RecordFile
from training.runs.loop import read_result
from training.words.storage import Storage

FOLDER = Path("analyses/tables")


class Column(CheckedRecord):
    """One figure of every row; corpus, split and metric as in the files of figures."""

    name: str
    corpus: str
    split: str
    metric: str
    scale: float = 100.0  # factor of the printed value: papers print r x 100
    digits: int = 1
    lower_is_better: bool = False

    def of(self, figures: Iterable[Figure]) -> float | None:
        """The figure in the unit of the table, or None when it was not measured."""
        value = value_of(figures, self.corpus, self.split, self.metric)
        return None if value is None else value * self.scale


class PaperFigure(CheckedRecord):
    """A figure printed in the paper, in the unit of the column; `note` says how it differs from ours, if it does."""

    value: float
    note: str = ""


class Order(CheckedRecord):
    """A claim of a paper that one row is better than another; checked on the means of our seeds."""

    better: str
    worse: str
    column: str
    printed: str = ""  # the column of the paper's figures, if it differs
    worse_column: str = ""  # where two columns are compared, of the same row or not


class Training(CheckedRecord):
    """Result of a run, from its `result.json`."""

    dev: float  # the selection score of the epoch kept
    best_epoch: int
    epochs: int
    seconds: float


class MeasuredRun(CheckedRecord):
    """One run behind a row's figures, and the command that measured it."""

    recipe: str
    command: str
    measured: date
    training: Training | None  # None: the run is on another machine


class Measurement(CheckedRecord):
    """One seed of a row; figures by name of column, in its unit."""

    seed: int
    figures: dict[str, float]
    runs: tuple[MeasuredRun, ...]


class ResultRow(CheckedRecord):
    """One recipe (or one for each task): the paper's figures, and ours per seed with mean and standard deviation."""

    recipe: str
    label: str
    note: str = ""
    storage: Storage = "float32"  # of the word table when it is measured
    others: tuple[str, ...] = ()  # recipes of the row's other tasks; each column is measured by one of them only
    wanted: tuple[int, ...] = (1,)  # seeds to train with
    retired: str = ""  # the commit that has its recipes, where they are no longer here
    seeds: tuple[Measurement, ...] = ()
    mean: dict[str, float] = Field(default_factory=dict)
    std: dict[str, float] = Field(default_factory=dict)  # n - 1; none for one seed
    paper: dict[str, PaperFigure] = Field(default_factory=dict)

    @property
    def recipes(self) -> tuple[str, ...]:
        """All recipes of the row."""
        return (self.recipe, *self.others)


class PaperTable(RecordFile):
    """All rows and columns of a paper's table.

    Raises:
        ValueError: a paper's figure or an order names a column or row that the table lacks.
    """

    table: str  # its name
    title: str
    note: str = ""
    command: str
    columns: tuple[Column, ...]
    rows: tuple[ResultRow, ...]
    orders: tuple[Order, ...] = ()

    @property
    def stem(self) -> str:
        """The name of the table."""
        return self.table

    def row(self, recipe: str) -> ResultRow:
        """The row of a recipe."""
        return next(row for row in self.rows if row.recipe == recipe)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        columns = {column.name for column in self.columns}
        recipes = {row.recipe for row in self.rows}
        if len(recipes) != len(self.rows):
            raise ValueError(f"table {self.table}: a recipe stands in two rows")
        for row in self.rows:
            if unknown := sorted(set(row.paper) - columns):
                raise ValueError(f"table {self.table}, row {row.recipe}: no column {', '.join(unknown)}")
        for order in self.orders:
            named = {order.column, order.printed or order.column, order.worse_column or order.column}
            if not named <= columns or not {order.better, order.worse} <= recipes:
                raise ValueError(f"table {self.table}: {order} is of no row or column here")
        return self


def read_tables(folder: Path) -> dict[str, PaperTable]:
    """The tables of a folder by name."""
    return {path.stem: PaperTable.load(path) for path in sorted(folder.glob("*.json"))}


def known_tables(folder: Path) -> dict[str, PaperTable]:
    """The tables of a folder, and those of `analyses/tables` that it lacks, without what was measured of them."""
    asked = {
        name: table.model_copy(update={"rows": tuple(_filled(row, table, ()) for row in table.rows)})
        for name, table in read_tables(FOLDER).items()
    }
    return asked | read_tables(folder)


def find_table(name: str, folder: Path) -> PaperTable:
    """The table of `known_tables` with this name.

    Raises:
        KeyError: with the nearest names.
    """
    return by_name(known_tables(folder), name, "table", "python -m training reproduce --list")


def collect(table: PaperTable, runs: Path, figures: Path) -> PaperTable:
    """The table with all figures measured so far; its records of runs on other machines are kept."""
    rows = []
    for row in table.rows:
        known = {(run.recipe, each.seed): run.training for each in row.seeds for run in each.runs}
        paths = [path for name in row.recipes for path in sorted(figures.glob(f"{name}-seed*-{row.storage}.json"))]
        files = [FigureFile.load(path) for path in paths]
        seeds = []
        for seed in sorted({file.seed for file in files}):
            of_seed = [file for file in files if file.seed == seed]
            measured = [figure for file in of_seed for figure in file.figures]
            found = {column.name: value for column in table.columns if (value := column.of(measured)) is not None}
            done = tuple(
                MeasuredRun(
                    recipe=file.recipe,
                    command=file.command,
                    measured=file.measured,
                    training=_training(runs / file.recipe / f"seed-{seed}") or known.get((file.recipe, seed)),
                )
                for file in of_seed
            )
            seeds.append(Measurement(seed=seed, figures=found, runs=done))
        rows.append(_filled(row, table, tuple(seeds)))
    return table.model_copy(update={"rows": tuple(rows)})


def figure_path(figures: Path, recipe: str, seed: int, storage: str) -> Path:
    """The file that `evaluate` and `publish` write (see `FigureFile`)."""
    return figures / f"{recipe}-seed{seed}-{storage}.json"


def _filled(row: ResultRow, table: PaperTable, seeds: tuple[Measurement, ...]) -> ResultRow:
    values = {c.name: [each.figures[c.name] for each in seeds if c.name in each.figures] for c in table.columns}
    return row.model_copy(
        update={
            "seeds": seeds,
            "mean": {name: mean(found) for name, found in values.items() if found},
            "std": {name: stdev(found) for name, found in values.items() if len(found) > 1},
        }
    )


def _training(folder: Path) -> Training | None:
    if (result := read_result(folder)) is None:
        return None
    return Training(
        dev=result.best["selection"], best_epoch=result.best_epoch, epochs=result.epochs, seconds=result.seconds
    )
