"""``python -m training data``: list the data folder."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from training.corpora.catalogue import catalogue
from training.corpora.catalogue.inventory import State, Status, status
from training.corpora.files import data_dir

_COLOURS = {State.FOUND: "green", State.INCOMPLETE: "yellow", State.MISSING: "red"}


def list_corpora(
    as_json: Annotated[bool, typer.Option("--json", help="print the list as JSON, with every file")] = False,
) -> None:
    """List every corpus: found, incomplete or not, rows counted and published, licence, official source."""
    statuses = [status(corpus) for corpus in catalogue.CATALOGUE]
    if as_json:
        typer.echo(json.dumps([_as_json(each) for each in statuses], indent=2))
        return
    console = _console()
    console.print(_table(statuses))
    for each in statuses:
        if each.state is State.INCOMPLETE:
            for file in each.files:
                if file.problem is not None:
                    console.print(f"{each.corpus.id}: {escape(file.file)}: {escape(file.problem)}", soft_wrap=True)
    found = sum(each.state is State.FOUND for each in statuses)
    console.print(f"{found} of {len(statuses)} found in {escape(str(data_dir()))} (set SEMBLANCE_DATA to move it)")


def _table(statuses: list[Status]) -> Table:
    table = Table("corpus", "what", "status", "rows", "published", "licence", "official source")
    for column in (3, 4):
        table.columns[column].justify = "right"
    table.columns[6].overflow = "fold"
    for each in statuses:
        corpus = each.corpus
        table.add_row(
            corpus.id,
            escape(corpus.what),
            f"[{_COLOURS[each.state]}]{each.state}[/]",
            f"{each.rows:,}" if each.state is not State.MISSING else "-",
            f"{each.published:,}",
            escape(corpus.licence),
            escape(corpus.source),
        )
    return table


def _as_json(each: Status) -> dict[str, object]:
    corpus = each.corpus
    return {
        "id": corpus.id,
        "what": corpus.what,
        "status": str(each.state),
        "rows": each.rows,
        "published": each.published,
        "files": [
            {"file": file.file, "rows": file.rows, "published": file.published, "problem": file.problem}
            for file in each.files
        ],
        "licence": corpus.licence,
        "source": corpus.source,
    }


def _console() -> Console:
    console = Console()
    # A pipe has no width; the default of 80 columns would wrap every row of the table.
    return console if console.is_terminal else Console(width=200)
