"""Declaration of a table: the recipes of its rows and the figures of its columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from contract.manifest import Figure
from training.publishing.figures import value_of
from training.words.storage import Storage


@dataclass(frozen=True)
class Column:
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


@dataclass(frozen=True)
class PaperFigure:
    """A figure printed in the paper, in the unit of the column; `note` says how it differs from ours, if it does."""

    value: float
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One recipe (or one for each task), the seeds to train with and the paper's figures by the names of columns."""

    recipe: str
    label: str
    paper: Mapping[str, PaperFigure] = field(default_factory=dict)
    note: str = ""
    seeds: tuple[int, ...] = (1,)
    storage: Storage = "float32"  # of the word table when it is measured
    others: tuple[str, ...] = ()  # recipes of the row's other tasks; each column is measured by one of them only

    @property
    def recipes(self) -> tuple[str, ...]:
        """All recipes of the row."""
        return (self.recipe, *self.others)


def published_row(
    recipe: str,
    label: str,
    paper: Mapping[str, PaperFigure] | None = None,
    note: str = "",
    seeds: tuple[int, ...] = (1,),
) -> Row:
    """A row measured as published: with int8 words."""
    return Row(recipe, label, paper or {}, note, seeds=seeds, storage="int8")


@dataclass(frozen=True)
class Order:
    """A claim of a paper that one row is better than another; checked on the means of our seeds."""

    better: str
    worse: str
    column: str
    printed: str = ""  # the column of the paper's figures, if it differs
    worse_column: str = ""  # where two columns are compared, of the same row or not


@dataclass(frozen=True)
class PaperTable:
    """The table that `python -m training reproduce <name>` trains and measures, with the paper's figures.

    Raises:
        ValueError: a paper's figure or an order names a column or row that the table lacks.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    orders: tuple[Order, ...] = ()

    def __post_init__(self) -> None:
        columns = {column.name for column in self.columns}
        recipes = {row.recipe for row in self.rows}
        if len(recipes) != len(self.rows):
            raise ValueError(f"table {self.name}: a recipe stands in two rows")
        for row in self.rows:
            if unknown := sorted(set(row.paper) - columns):
                raise ValueError(f"table {self.name}, row {row.recipe}: no column {', '.join(unknown)}")
        for order in self.orders:
            named = {order.column, order.printed or order.column, order.worse_column or order.column}
            if not named <= columns or not {order.better, order.worse} <= recipes:
                raise ValueError(f"table {self.name}: {order} is of no row or column here")
