"""`python -m papers`: the tables of the five papers, made again and compared."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

import papers.recipes  # noqa: F401 (makes them known)
from papers.paper_table import FOLDER, PaperTable, find_table, read_tables
from papers.pictures.curves import CURVES, draw_curve
from papers.pictures.interactions import TITLES, met
from papers.pictures.plots import interactions as plot_interactions
from papers.report import write_report
from papers.reproduce import Comparison, ReproductionFolders, SeedOutcome, plan
from papers.reproduce import again as train_again
from papers.reproduce import reproduce as carry_out
from training.__main__ import evaluate, publish, recipes, train, vectors
from training.console import TeacherPath, console, run, set_up_logging, teacher_folder
from training.publish.figures import FIGURES, REPEATS

app = typer.Typer(
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Make a paper's table, again or for the first time, and papers/RESULTS.md. Runs are kept under runs/ and "
    "resume where they were interrupted.",
)

Runs = Annotated[Path, typer.Option(help="where word tables, runs and teacher encodings are kept")]
Figures = Annotated[Path, typer.Option(help="folder of measured figures, as JSON Lines")]
Tables = Annotated[Path, typer.Option(help="folder of tables, as JSON")]
Repeats = Annotated[Path, typer.Option(help="file of runs that were trained once more, as JSON Lines")]
Report = Annotated[Path, typer.Option(help="the report to write")]


@app.callback()
def main() -> None:
    """Set up logging for every command."""
    set_up_logging()


# The steps of one run, as in `python -m training`, which does not know the recipes of the tables.
for step in (recipes, vectors, train, publish, evaluate):
    app.command()(step)


@app.command()
def tables(folder: Annotated[Path, typer.Option("--tables", help="folder of tables, as JSON")] = FOLDER) -> None:
    """List the tables there are."""
    shown = Table("table", "what", "rows", "columns")
    for each in read_tables(folder).values():
        shown.add_row(each.table, each.title, str(len(each.rows)), str(len(each.columns)))
    console.print(shown)


@app.command()
def results(
    figures: Figures = FIGURES,
    tables: Tables = FOLDER,
    out: Report = Path("papers/RESULTS.md"),
) -> None:
    """Write papers/RESULTS.md and its plots from the measured figures, beside the papers'."""
    write_report(figures, out, tables)
    console.print(f"wrote {out}")


@app.command()
def draw(
    out: Annotated[Path, typer.Option(help="folder for the pictures")] = Path("docs/papers"),
    repeats: Repeats = REPEATS,
) -> None:
    """Draw the learning curve of each page of docs/papers, as NAME-learning.svg; needs the extra `papers`."""
    for page in CURVES:
        path = out / f"{page}-learning.svg"
        draw_curve(page, path, repeats)
        console.print(f"wrote {path}")


@app.command()
def interactions(
    models: Annotated[Path, typer.Option(help="folder of published models")] = Path("models"),
    out: Annotated[Path, typer.Option(help="folder for the plots")] = Path("papers/interactions"),
) -> None:
    """Plot which words met in the published models of PWIM and MGIM, for four pairs; needs the extra `papers`."""
    for model, title in TITLES.items():
        path = out / f"{model}.svg"
        plot_interactions(title, met(model, models), path)
        console.print(f"wrote {path}")


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(help="tables, one after the other (see `tables`)")],
    rows: Annotated[str, typer.Option(help="only these recipes, separated by commas")] = "",
    seeds: Annotated[str, typer.Option(help="these seeds instead of the table's, separated by commas")] = "",
    again: Annotated[bool, typer.Option("--again", help="train what is recorded once more, and compare")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="with --again: add the new runs to the file of repeats")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only print what is missing")] = False,
    teacher: TeacherPath = None,
    runs: Runs = Path("runs"),
    figures: Figures = FIGURES,
    tables: Tables = FOLDER,
    report: Report = Path("papers/RESULTS.md"),
    repeats: Repeats = REPEATS,
) -> None:
    """Train and measure what is missing of a paper's table, or all of it again; resumes when killed."""
    if keep and not again:
        raise typer.BadParameter("it goes with --again", param_hint="--keep")
    wanted = [find_table(name, tables) for name in names]
    places = ReproductionFolders(runs=runs, figures=figures, tables=tables, report=report, repeats=repeats)
    chosen, numbers = tuple(filter(None, rows.split(","))), _seeds(seeds)
    if dry_run:
        for each in wanted:
            jobs = plan(each, places.again() if again else places, chosen, numbers)
            for job in jobs:
                console.print(f"{job.name}: {' and '.join(job.steps)}", highlight=False)
            console.print(f"{each.table}: {len(jobs)} to do", highlight=False)
        return
    failed = False
    for each in wanted:
        if again:
            folder = teacher_folder(teacher)
            outcome, compared = train_again(each, places, folder, chosen, numbers, keep=keep)
            console.print(_compared(each, compared))
        else:
            outcome = carry_out(each, places, teacher_folder(teacher), chosen, numbers)
        failed |= bool(outcome.failures)
        _say(each, outcome, report if not again else places.again().runs)
    if failed:
        raise typer.Exit(1)


def _compared(table: PaperTable, compared: list[Comparison]) -> Table:
    shown = Table("row", "column", "seed", "recorded", "its seeds", "new", "within their spread")
    digits = {column.name: column.digits + 1 for column in table.columns}
    for each in compared:
        places = digits[each.column]
        same = "" if each.recorded is None else f"{each.recorded:.{places}f}"
        spread = "" if each.spread is None else f" ± {each.spread:.{places}f}"
        verdict = {None: "one seed", True: "yes", False: "no"}[each.agrees]
        seeds = f"{each.mean:.{places}f}{spread}"
        shown.add_row(each.row, each.column, str(each.seed), same, seeds, f"{each.new:.{places}f}", verdict)
    return shown


def _say(table: PaperTable, outcome: SeedOutcome, where: Path) -> None:
    for name, reason in outcome.failures:
        console.print(f"[red]failed:[/red] {escape(name)}: {escape(reason)}", soft_wrap=True)
    done = f"{outcome.jobs - len(outcome.failures)} of {outcome.jobs} done"
    console.print(f"{table.table}: {done}, {where}", soft_wrap=True)


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        raise typer.BadParameter(
            f"expected whole numbers separated by commas, got {text!r}", param_hint="--seeds"
        ) from None


if __name__ == "__main__":
    run(app)
