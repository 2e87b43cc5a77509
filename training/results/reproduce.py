"""Reproduce a declared table: train missing runs, measure missing figures, write the table.

Finished runs are recognised by their `result.json` and `model.pt`; interrupted ones resume. All runs share one process,
so corpora are read once.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from training.families import family_of
from training.publishing.figures import FigureFile
from training.publishing.publish import evaluate_run
from training.recipes import find, starts_of
from training.recipes.recipe import Recipe, differences
from training.results.page import write_report
from training.results.tables import FOLDER, PaperTable, collect, figure_path
from training.runs.folder import WEIGHTS_NAME, changed_settings, run_folder
from training.runs.run import run
from training.words.storage import Storage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReproductionFolders:
    """Folders that a reproduction reads and writes."""

    runs: Path = Path("runs")
    figures: Path = Path("analyses/figures")
    tables: Path = FOLDER
    report: Path = Path("analyses/RESULTS.md")


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


def plan(
    table: PaperTable, places: ReproductionFolders, rows: Sequence[str] = (), seeds: Sequence[int] = ()
) -> list[ReproductionJob]:
    """The missing jobs of a table in order of execution: a run comes after the run it starts from.

    A run is measured again when it is newer than its figures. Figures without a run in `places.runs` (trained on
    another machine) are kept, unless the recipe has changed since.

    Raises:
        KeyError: the table has no such row, or its recipe has gone.
    """
    if unknown := sorted(set(rows) - {recipe for row in table.rows for recipe in row.recipes}):
        known = ", ".join(recipe for row in table.rows for recipe in row.recipes)
        raise KeyError(f"table {table.table} has no row {', '.join(unknown)}; it has {known}")
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
            if _is_measured(recipe, places, seed, row.storage):
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


def _is_measured(recipe: Recipe, places: ReproductionFolders, seed: int, storage: Storage) -> bool:
    figures = figure_path(places.figures, recipe.name, seed, storage)
    folder = run_folder(places.runs, recipe, seed)
    if not (folder / "recipe.json").is_file():
        return figures.is_file() and not _outdated(figures, recipe)
    if not is_trained(recipe, places.runs, seed):
        return False
    return figures.is_file() and figures.stat().st_mtime >= (folder / WEIGHTS_NAME).stat().st_mtime


def _outdated(figures: Path, recipe: Recipe) -> bool:
    """Whether the recipe has changed since; False for files without recorded settings."""
    then = FigureFile.load(figures).settings
    return then is not None and bool(differences(then, recipe))


def reproduce(
    table: PaperTable,
    places: ReproductionFolders,
    teacher: Path | None,
    rows: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> SeedOutcome:
    """Do all missing jobs of a table; the table's file is written after every job, the report at the end.

    A job that fails does not stop the others: failures are returned.

    Raises:
        KeyError: a row that the table has not.
    """
    jobs = plan(table, places, rows, seeds)
    failures: list[tuple[str, str]] = []
    collect(table, places.runs, places.figures).save(places.tables)
    for number, job in enumerate(jobs, 1):
        try:
            _carry_out(job, places, teacher)
        except Exception as error:  # other rows still run; the failure is reported at the end, with exit code 1
            logger.exception("%s failed", job.name)
            failures.append((job.name, f"{type(error).__name__}: {error}"))
        collect(table, places.runs, places.figures).save(places.tables)
        logger.info("%s: %d of %d", job.name, number, len(jobs))
    write_report(places.figures, places.report, places.tables)
    return SeedOutcome(len(jobs), failures)


def _carry_out(job: ReproductionJob, places: ReproductionFolders, teacher: Path | None) -> None:
    family = family_of(job.recipe, places.runs, job.seed)
    if job.train:
        result = run(family, teacher)
        logger.info("%s: development %.4f, %.0f s", job.name, result.best["selection"], result.seconds)
    if job.storage is not None:
        evaluate_run(family, places.figures, job.storage)
