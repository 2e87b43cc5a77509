"""``python -m training analyse``: analyses of trained models, each with data, plots and a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from training.names import by_name

if TYPE_CHECKING:
    from training.analyses.analysis import Analysis


def all_analyses() -> "dict[str, Analysis]":
    """Every analysis by name, in the order of the listing; imported here because they need torch and matplotlib."""
    from training.analyses import interactions, length, malstm_space

    modules = (malstm_space, length, interactions)
    return {module.ANALYSIS.name: module.ANALYSIS for module in modules}


def analyse(
    name: Annotated[str | None, typer.Argument(help="an analysis [default: list them]")] = None,
    recipe: Annotated[str, typer.Option(help="recipes to analyse, separated by commas [default: its own]")] = "",
    seed: Annotated[int, typer.Option(help="of the runs")] = 1,
    draw_only: Annotated[
        bool, typer.Option("--draw-only", help="only write plots and page from the existing data")
    ] = False,
    runs: Annotated[Path, typer.Option(help="where word tables and runs are kept")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="folder of analyses")] = Path("analyses"),
) -> None:
    """Analyse trained runs: data, plots and a page under analyses/NAME/."""
    from training.analyses.analysis import AnalysisError, Options, carry_out, render, write_index

    console, known = Console(), all_analyses()
    if name is None:
        shown = Table("analysis", "what", "where", "recipes")
        for each in known.values():
            shown.add_row(each.name, each.title, each.source, ", ".join(each.recipes))
        console.print(shown)
        return
    analysis = by_name(known, name, "analysis")
    try:
        if draw_only:
            render(analysis, out)
        else:
            recipes = tuple(filter(None, recipe.split(","))) or analysis.recipes
            carry_out(analysis, Options(recipes, seed, runs), out)
    except AnalysisError as error:
        raise typer.BadParameter(str(error)) from error
    write_index(known.values(), out)
    console.print(f"wrote {out / name}", highlight=False, soft_wrap=True)
