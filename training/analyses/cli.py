"""``python -m training analyse``: questions about trained models, answered with data, plots and a page each."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Table


def analyse(
    name: Annotated[Optional[str], typer.Argument(help="an analysis [default: list them]")] = None,  # noqa: UP045
    recipe: Annotated[str, typer.Option(help="recipes to look at, separated by commas [default: its own]")] = "",
    seed: Annotated[int, typer.Option(help="of the runs")] = 1,
    draw_only: Annotated[bool, typer.Option("--draw-only", help="only draw and describe the data there are")] = False,
    runs: Annotated[Path, typer.Option(help="where word tables and runs are kept")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="folder of analyses")] = Path("analyses"),
) -> None:
    """Answer a question about trained runs: data, plots and a page under analyses/<name>/."""
    from training.analyses.analysis import AnalysisError, Options, carry_out, render, write_index
    from training.analyses.registry import ANALYSES, find_analysis

    console = Console()
    if name is None:
        shown = Table("analysis", "what", "where", "recipes")
        for each in ANALYSES.values():
            shown.add_row(each.name, each.title, each.source, ", ".join(each.recipes))
        console.print(shown)
        return
    analysis = find_analysis(name)
    try:
        if draw_only:
            render(analysis, out)
        else:
            recipes = tuple(filter(None, recipe.split(","))) or analysis.recipes
            carry_out(analysis, Options(recipes, seed, runs), out)
    except AnalysisError as error:
        raise typer.BadParameter(str(error)) from error
    write_index(ANALYSES.values(), out)
    console.print(f"wrote {out / name}", highlight=False, soft_wrap=True)
