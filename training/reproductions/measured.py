"""analyses/tables/<table>.json: what was measured for a declared table, beside the paper's figures."""

import json
from datetime import date
from pathlib import Path
from statistics import mean, stdev

from pydantic import BaseModel, ConfigDict

from training.figures import FigureFile
from training.reproductions.table import PaperTable, Row


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Training(_Frozen):
    """How a run went: its `result.json`."""

    dev: float  # the selection score of the epoch kept
    best_epoch: int
    epochs: int
    seconds: float


class MeasuredRun(_Frozen):
    """One run behind a row's figures, and the command that measured it."""

    recipe: str
    command: str
    measured: date
    training: Training | None  # None: measured elsewhere, and the run is not here


class Measurement(_Frozen):
    """One seed of a row; figures by name of column, in its unit."""

    seed: int
    figures: dict[str, float]
    runs: tuple[MeasuredRun, ...]


class Printed(_Frozen):
    """A paper's figure and how it differs from ours."""

    value: float
    note: str


class MeasuredRow(_Frozen):
    """A row: ours per seed, their mean and standard deviation (n - 1; none for one seed), the paper's."""

    recipe: str
    label: str
    note: str
    storage: str
    seeds: tuple[Measurement, ...]
    mean: dict[str, float]
    std: dict[str, float]
    paper: dict[str, Printed]


class MeasuredColumn(_Frozen):
    """How to print a column."""

    name: str
    corpus: str
    split: str
    metric: str
    scale: float
    digits: int
    lower_is_better: bool


class Claim(_Frozen):
    """That one row is better than another, as the paper's figures (where printed) and ours have it."""

    better: str
    worse: str
    column: str
    printed: str
    worse_column: str


class MeasuredTable(_Frozen):
    """A whole table."""

    table: str
    title: str
    note: str
    command: str
    columns: tuple[MeasuredColumn, ...]
    rows: tuple[MeasuredRow, ...]
    orders: tuple[Claim, ...]

    def row(self, recipe: str) -> MeasuredRow:
        """The row of a recipe."""
        return next(row for row in self.rows if row.recipe == recipe)

    def save(self, folder: Path) -> Path:
        """Write `<table>.json`: the old file or the new one, never half of one."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.table}.json"
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
        return path

    @classmethod
    def load(cls, path: Path) -> "MeasuredTable":
        """Read a table back."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))


def collect(table: PaperTable, runs: Path, figures: Path, tables: Path) -> MeasuredTable:
    """All that was measured of a table so far, whichever seeds; what the table's file knows of runs not here stays."""
    path = tables / f"{table.name}.json"
    before = MeasuredTable.load(path) if path.is_file() else None
    return MeasuredTable(
        table=table.name,
        title=table.title,
        note=table.note,
        command=f"python -m training reproduce {table.name}",
        columns=tuple(MeasuredColumn(**vars(column)) for column in table.columns),
        rows=tuple(_row(row, table, runs, figures, before) for row in table.rows),
        orders=tuple(Claim(**vars(order)) for order in table.orders),
    )


def figure_path(figures: Path, recipe: str, seed: int, storage: str) -> Path:
    """Where `evaluate` and `publish` write (see `FigureFile.save`)."""
    return figures / f"{recipe}-seed{seed}-{storage}.json"


def _row(row: Row, table: PaperTable, runs: Path, figures: Path, before: MeasuredTable | None) -> MeasuredRow:
    known = {
        (run.recipe, each.seed): run.training
        for old in (before.rows if before else ())
        for each in old.seeds
        for run in each.runs
    }
    files = [FigureFile.model_validate_json(path.read_text(encoding="utf-8")) for path in _files(row, figures)]
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
        paper={name: Printed(value=each.value, note=each.note) for name, each in row.paper.items()},
    )


def _files(row: Row, figures: Path) -> list[Path]:
    """The files of figures of a row's recipes, whichever seeds."""
    return [path for recipe in row.recipes for path in sorted(figures.glob(f"{recipe}-seed*-{row.storage}.json"))]


def _training(folder: Path) -> Training | None:
    path = folder / "result.json"
    if not path.is_file():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    return Training(
        dev=result["best"]["selection"],
        best_epoch=result["best_epoch"],
        epochs=result["epochs"],
        seconds=result["seconds"],
    )
