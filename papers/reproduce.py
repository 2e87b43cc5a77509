"""Reproduce a declared table: train missing runs, measure missing figures, write the report; or train it again.

Finished runs are recognised by their `result.json` and `model.pt`; interrupted ones resume. All runs share one process,
so corpora are read once.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from papers.paper_table import FOLDER, PaperTable, collect
from papers.report import write_report
from training.data.words.storage import Storage
from training.families import family_of
from training.publish.figures import FIGURES, REPEATS, RunFigures, add_run, read_figures
from training.publish.publish import evaluate_run, run_figures, training_summary
from training.recipes import find, starts_of
from training.recipes.recipe import Recipe, differences
from training.train.folder import WEIGHTS_NAME, changed_settings, run_folder
from training.train.run import run

logger = logging.getLogger(__name__)

AGAIN = "again"  # in the folder of runs: those that are trained again to be compared
_SHARED = ("tables", "weights", "ratings", "teacher")  # what runs are made from
SPREADS = 2  # standard deviations of its seeds that a row's new figure may lie from their mean


@dataclass(frozen=True)
class ReproductionFolders:
    """Folders that a reproduction reads and writes."""

    runs: Path = Path("runs")
    figures: Path = FIGURES
    tables: Path = FOLDER
    report: Path = Path("papers/RESULTS.md")
    repeats: Path = REPEATS

    def again(self) -> "ReproductionFolders":
        """The folders of runs that are trained again: nothing that is recorded is touched."""
        runs = self.runs / AGAIN
        runs.mkdir(parents=True, exist_ok=True)
        for name in _SHARED:
            if (self.runs / name).is_dir() and not (runs / name).exists():
                (runs / name).symlink_to((self.runs / name).resolve(), target_is_directory=True)
        return replace(self, runs=runs, figures=runs / "figures", report=runs / "RESULTS.md")


@dataclass(frozen=True)
class ReproductionJob:
    """One seed of one recipe; `storage` is None for a run that is only the start of another."""

    recipe: Recipe
    seed: int
    storage: Storage | None
    train: bool
    measure: bool

    @property
    def name(self) -> str:
        """The job's name in messages."""
        return f"{self.recipe.name} seed {self.seed}"

    @property
    def steps(self) -> list[str]:
        """Steps still to do."""
        return ["train"] * self.train + [f"measure ({self.storage})"] * self.measure


@dataclass(frozen=True)
class SeedOutcome:
    """How many jobs there were, and what failed: the job's name and why."""

    jobs: int
    failures: list[tuple[str, str]]


@dataclass(frozen=True)
class Comparison:
    """A row's figure that is recorded beside the one of a run that was trained again.

    Attributes:
        row: recipe of the row.
        column: of the table.
        seed: of the new run.
        recorded: of the same seed; None where it was not measured.
        mean: of all recorded seeds.
        spread: their standard deviation; None for one seed.
        new: the new figure.
    """

    row: str
    column: str
    seed: int
    recorded: float | None
    mean: float
    spread: float | None
    new: float

    @property
    def agrees(self) -> bool | None:
        """Whether the new figure lies within `SPREADS` spreads of the mean; None where there is no spread."""
        return None if self.spread is None else abs(self.new - self.mean) <= SPREADS * self.spread


def plan(
    table: PaperTable, places: ReproductionFolders, rows: Sequence[str] = (), seeds: Sequence[int] = ()
) -> list[ReproductionJob]:
    """The missing jobs of a table in order of execution: a run comes after the run it starts from.

    A run is measured again when it ended otherwise than its recorded figures say. Figures without a run in
    `places.runs` (trained on another machine) are kept, unless the recipe has changed since.

    Raises:
        KeyError: the table has no such row, or its recipe has gone.
    """
    if unknown := sorted(set(rows) - {recipe for row in table.rows for recipe in row.recipes}):
        known = ", ".join(recipe for row in table.rows for recipe in row.recipes)
        raise KeyError(f"table {table.table} has no row {', '.join(unknown)}; it has {known}")
    measured = {run.key: run for run in read_figures(places.figures)}
    jobs: dict[tuple[str, int], ReproductionJob] = {}
    for row, name in ((each, recipe) for each in table.rows for recipe in each.recipes):
        if rows and name not in rows and row.recipe not in rows:
            continue
        if row.retired:
            if rows:
                raise KeyError(f"the recipe {name} is no longer here: commit {row.retired} has it")
            continue
        recipe = find(name)
        for seed in seeds or row.wanted:
            if _is_measured(recipe, places, seed, measured.get((name, seed, row.storage))):
                continue
            for start, its_seed in starts_of(recipe, seed):
                if not is_trained(start, places.runs, its_seed):
                    jobs.setdefault(
                        (start.name, its_seed), ReproductionJob(start, its_seed, None, train=True, measure=False)
                    )
            trained = is_trained(recipe, places.runs, seed)
            jobs[name, seed] = ReproductionJob(recipe, seed, row.storage, train=not trained, measure=True)
    return list(jobs.values())


def is_trained(recipe: Recipe, runs: Path, seed: int) -> bool:
    """Whether a finished run with the present settings of the recipe exists."""
    folder = run_folder(runs, recipe, seed)
    finished = (folder / "result.json").is_file() and (folder / WEIGHTS_NAME).is_file()
    return finished and not changed_settings(folder, recipe, seed)


def _is_measured(recipe: Recipe, places: ReproductionFolders, seed: int, measured: RunFigures | None) -> bool:
    if measured is None:
        return False
    folder = run_folder(places.runs, recipe, seed)
    if not (folder / "recipe.json").is_file():
        return measured.settings is None or not differences(measured.settings, recipe)
    return is_trained(recipe, places.runs, seed) and measured.training in (None, training_summary(folder))


def reproduce(
    table: PaperTable,
    places: ReproductionFolders,
    teacher: Path | None,
    rows: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> SeedOutcome:
    """Do all missing jobs of a table, and write the report.

    A job that fails does not stop the others: failures are returned.

    Raises:
        KeyError: a row that the table has not.
    """
    outcome = _carry_out_all(plan(table, places, rows, seeds), places, teacher)
    if read_figures(places.figures):
        write_report(places.figures, places.report, places.tables)
    return outcome


def again(
    table: PaperTable,
    places: ReproductionFolders,
    teacher: Path | None,
    rows: Sequence[str] = (),
    seeds: Sequence[int] = (),
    *,
    keep: bool = False,
) -> tuple[SeedOutcome, list[Comparison]]:
    """Train what a table holds once more, beside what is recorded, and compare; resumes when killed.

    Args:
        table: what is trained.
        places: the folders of what is recorded; the new runs lie in `runs/again`.
        teacher: folder of the teacher, where a recipe needs it.
        rows: only these.
        seeds: instead of the table's own.
        keep: add the new runs to the file of repeats, beside what is recorded; without figures where their
            graphs are refused.

    Raises:
        KeyError: a row that the table has not, or whose recipe has gone.
    """
    new = places.again()
    outcome = _carry_out_all(plan(table, new, rows, seeds), new, teacher)
    found = read_figures(new.figures)
    compared = compare(collect(table, read_figures(places.figures)), collect(table, found))
    names = {recipe for row in table.rows for recipe in row.recipes}
    for each in found:
        if each.recipe in names and keep:
            add_run(places.repeats, each)
    for job in plan(table, new, rows, seeds) if keep else ():
        if job.storage is not None and not job.train:  # trained, but not measured
            family = family_of(job.recipe, new.runs, job.seed)
            add_run(places.repeats, run_figures(family, job.storage, f"evaluate --storage {job.storage}", []))
    return outcome, compared


def compare(recorded: PaperTable, new: PaperTable) -> list[Comparison]:
    """Every new figure of a table beside what is recorded of its row and column."""
    found = []
    for row in new.rows:
        before = recorded.row(row.recipe)
        of_seed = {each.seed: each.figures for each in before.seeds}
        for each in row.seeds:
            for column, value in each.figures.items():
                if column in before.mean:
                    same = of_seed.get(each.seed, {}).get(column)
                    spread = before.std.get(column)
                    known = (row.recipe, column, each.seed, same, before.mean[column], spread)
                    found.append(Comparison(*known, new=value))
    return found


def _carry_out_all(jobs: Sequence[ReproductionJob], places: ReproductionFolders, teacher: Path | None) -> SeedOutcome:
    failures: list[tuple[str, str]] = []
    for number, job in enumerate(jobs, 1):
        try:
            _carry_out(job, places, teacher)
        except Exception as error:  # other rows still run; the failure is reported at the end, with exit code 1
            logger.exception("%s failed", job.name)
            failures.append((job.name, f"{type(error).__name__}: {error}"))
        logger.info("%s: %d of %d", job.name, number, len(jobs))
    return SeedOutcome(len(jobs), failures)


def _carry_out(job: ReproductionJob, places: ReproductionFolders, teacher: Path | None) -> None:
    family = family_of(job.recipe, places.runs, job.seed)
    if job.train:
        result = run(family, teacher)
        logger.info("%s: development %.4f, %.0f s", job.name, result.best["selection"], result.seconds)
    if job.storage is not None:
        evaluate_run(family, places.figures, job.storage)
