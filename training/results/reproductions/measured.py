"""analyses/tables/<table>.json: measured figures of a declared table, beside the paper's."""

from datetime import date
from pathlib import Path
from statistics import mean, stdev

from training.publishing.figures import FigureFile
from training.records import Record, RecordFile
from training.results.reproductions.table import Column, Order, PaperFigure, PaperTable, Row
from training.runs.loop import read_result


class Training(Record):
    """Result of a run, from its `result.json`."""

    dev: float  # the selection score of the epoch kept
    best_epoch: int
    epochs: int
    seconds: float


class MeasuredRun(Record):
    """One run behind a row's figures, and the command that measured it."""

    recipe: str
    command: str
    measured: date
    training: Training | None  # None: the run is on another machine


class Measurement(Record):
    """One seed of a row; figures by name of column, in its unit."""

    seed: int
    figures: dict[str, float]
    runs: tuple[MeasuredRun, ...]


class MeasuredRow(Record):
    """A row: ours per seed, their mean and standard deviation (n - 1; none for one seed), the paper's."""

    recipe: str
    label: str
    note: str
    storage: str
    seeds: tuple[Measurement, ...]
    mean: dict[str, float]
    std: dict[str, float]
    paper: dict[str, PaperFigure]


class MeasuredTable(RecordFile):
    """A whole table."""

    table: str
    title: str
    note: str
    command: str
    columns: tuple[Column, ...]
    rows: tuple[MeasuredRow, ...]
    orders: tuple[Order, ...]

    def row(self, recipe: str) -> MeasuredRow:
        """The row of a recipe."""
        return next(row for row in self.rows if row.recipe == recipe)

    @property
    def stem(self) -> str:
        """The table's name."""
        return self.table


def collect(table: PaperTable, runs: Path, figures: Path, tables: Path) -> MeasuredTable:
    """All figures of a table measured so far; the table's records of runs on other machines are kept."""
    path = tables / f"{table.name}.json"
    before = MeasuredTable.load(path) if path.is_file() else None
    return MeasuredTable(
        table=table.name,
        title=table.title,
        note=table.note,
        command=f"python -m training reproduce {table.name}",
        columns=table.columns,
        rows=tuple(_row(row, table, runs, figures, before) for row in table.rows),
        orders=table.orders,
    )


def figure_path(figures: Path, recipe: str, seed: int, storage: str) -> Path:
    """The file that `evaluate` and `publish` write (see `FigureFile`)."""
    return figures / f"{recipe}-seed{seed}-{storage}.json"


def _row(row: Row, table: PaperTable, runs: Path, figures: Path, before: MeasuredTable | None) -> MeasuredRow:
    known = {
        (run.recipe, each.seed): run.training
        for old in (before.rows if before else ())
        for each in old.seeds
        for run in each.runs
    }
    files = [FigureFile.load(path) for path in _files(row, figures)]
    seeds = []
    for seed in sorted({file.seed for file in files}):
        of_seed = [file for file in files if file.seed == seed]
        measured = [figure for file in of_seed for figure in file.figures]
        seeds.append(
            Measurement(
                seed=seed,
                figures={c.name: value for c in table.columns if (value := c.of(measured)) is not None},
                runs=tuple(
                    MeasuredRun(
                        recipe=file.recipe,
                        command=file.command,
                        measured=file.measured,
                        training=_training(runs / file.recipe / f"seed-{seed}") or known.get((file.recipe, seed)),
                    )
                    for file in of_seed
                ),
            )
        )
    together = {c.name: [s.figures[c.name] for s in seeds if c.name in s.figures] for c in table.columns}
    return MeasuredRow(
        recipe=row.recipe,
        label=row.label,
        note=row.note,
        storage=row.storage,
        seeds=tuple(seeds),
        mean={name: mean(values) for name, values in together.items() if values},
        std={name: stdev(values) for name, values in together.items() if len(values) > 1},
        paper=dict(row.paper),
    )


def _files(row: Row, figures: Path) -> list[Path]:
    """The files of figures of a row's recipes, all seeds."""
    return [path for recipe in row.recipes for path in sorted(figures.glob(f"{recipe}-seed*-{row.storage}.json"))]


def _training(folder: Path) -> Training | None:
    if (result := read_result(folder)) is None:
        return None
    return Training(
        dev=result.best["selection"], best_epoch=result.best_epoch, epochs=result.epochs, seconds=result.seconds
    )
