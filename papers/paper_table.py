"""Tables of the papers and our own, `papers/tables/<name>.json`: what is asked for; `collect` adds what was measured.

A file names columns, rows and claims of the kind "GRAN is better than AVG", with the figures that the paper prints (its
means over the sets at hand); all of it is entered by hand.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Self

from pydantic import Field, model_validator

from core.manifest import Figure
from training.data.words.storage import Storage
from training.names import by_name
from training.publish.figures import RunFigures, TrainingSummary, value_of
from training.records import CheckedRecord

FOLDER = Path("papers/tables")


class Column(CheckedRecord):
    """One figure of every row; corpus, split and metric as the measured figures name them."""

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


class MeasuredRun(CheckedRecord):
    """One run behind a row's figures, and the command that measured it."""

    recipe: str
    command: str
    measured: date
    training: TrainingSummary | None


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
    paper: dict[str, PaperFigure] = Field(default_factory=dict)
    # What was measured, by `collect`: not in the file.
    seeds: tuple[Measurement, ...] = ()
    mean: dict[str, float] = Field(default_factory=dict)
    std: dict[str, float] = Field(default_factory=dict)  # n - 1; none for one seed

    @property
    def recipes(self) -> tuple[str, ...]:
        """All recipes of the row."""
        return (self.recipe, *self.others)


class PaperTable(CheckedRecord):
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
    """The tables of a folder by name, without what was measured of them."""
    return {
        path.stem: PaperTable.model_validate_json(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }


def find_table(name: str, folder: Path) -> PaperTable:
    """The table of a folder with this name.

    Raises:
        KeyError: with the nearest names.
    """
    return by_name(read_tables(folder), name, "table", "python -m papers tables")


def collect(table: PaperTable, measured: Sequence[RunFigures]) -> PaperTable:
    """The table with all figures measured so far."""
    return table.model_copy(update={"rows": tuple(_filled(row, table, measured) for row in table.rows)})


def _filled(row: ResultRow, table: PaperTable, measured: Sequence[RunFigures]) -> ResultRow:
    by_seed: dict[int, list[RunFigures]] = {}
    for name in row.recipes:
        for run in measured:
            if (run.recipe, run.storage) == (name, row.storage):
                by_seed.setdefault(run.seed, []).append(run)
    seeds = []
    for seed, runs in sorted(by_seed.items()):
        figures = [figure for run in runs for figure in run.figures]
        found = {column.name: value for column in table.columns if (value := column.of(figures)) is not None}
        done = tuple(
            MeasuredRun(recipe=run.recipe, command=run.command, measured=run.measured, training=run.training)
            for run in runs
        )
        seeds.append(Measurement(seed=seed, figures=found, runs=done))
    values = {c.name: [each.figures[c.name] for each in seeds if c.name in each.figures] for c in table.columns}
    return row.model_copy(
        update={
            "seeds": tuple(seeds),
            "mean": {name: mean(found) for name, found in values.items() if found},
            "std": {name: stdev(found) for name, found in values.items() if len(found) > 1},
        }
    )
