"""A table of a paper (or of ours) declared as data: which recipes make its rows, which figures its columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from contract.manifest import Figure
from training.storage import Storage


@dataclass(frozen=True)
class Column:
    """One figure of every row; corpus, split and metric as the files of figures name them."""

    name: str
    corpus: str
    split: str
    metric: str
    scale: float = 100.0  # of what is printed: papers print r x 100, but a squared error as it is
    digits: int = 1
    lower_is_better: bool = False

    def of(self, figures: Iterable[Figure]) -> float | None:
        """The figure in the unit of the table, or None when it was not measured."""
        for figure in figures:
            if (figure.corpus, figure.split, figure.metric) == (self.corpus, self.split, self.metric):
                return figure.value * self.scale
        return None


@dataclass(frozen=True)
class PaperFigure:
    """What the paper prints, in the unit of the column; the note says how it differs from ours, where it does."""

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
    """A row measured as it is published: the words quantised, one table that several models share."""
    return Row(recipe, label, paper or {}, note, seeds=seeds, storage="int8")


@dataclass(frozen=True)
class Order:
    """A claim of a paper, that one row is better than another; held against the means of our seeds."""

    better: str
    worse: str
    column: str
    printed: str = ""  # the column of the paper's figures, where it prints none in that of ours
    worse_column: str = ""  # where a figure is held against another one, of the same row or not


@dataclass(frozen=True)
class PaperTable:
    """What `python -m training reproduce <name>` trains, measures and sets beside the paper's figures.

    Raises:
        ValueError: a paper's figure or an order is of a column or a row that the table has not.
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
