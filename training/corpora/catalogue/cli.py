"""``python -m training data``: list the data folder, download corpora."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from training.corpora.catalogue import catalogue
from training.corpora.catalogue.catalogue import Corpus
from training.corpora.catalogue.fetch import FetchError, fetch
from training.corpora.catalogue.inventory import State, Status, status
from training.corpora.files import data_dir

app = typer.Typer(
    rich_markup_mode="markdown",  # of the default, brackets would be styles
    help="List every corpus (found or not, rows, licence, official source); `fetch` downloads those that may be.",
    invoke_without_command=True,
)

_COLOURS = {State.FOUND: "green", State.INCOMPLETE: "yellow", State.MISSING: "red"}


@app.callback()
def list_corpora(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="print the list as JSON, with every file")] = False,
) -> None:
    """List every corpus: found, incomplete or not, rows counted and published, licence, official source."""
    if context.invoked_subcommand is not None:
        return
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


@app.command("fetch")
def fetch_corpora(
    ids: Annotated[list[str] | None, typer.Argument(help="corpora to fetch; all that can be by default")] = None,
    force: Annotated[bool, typer.Option(help="fetch again what is already complete")] = False,
) -> None:
    """Download corpora from their official sources, check them and convert them in the data folder."""
    console = _console()
    chosen = [catalogue.find(name) for name in ids] if ids else [c for c in catalogue.CATALOGUE if c.downloads]
    failed = False
    for corpus in chosen:
        if not force and status(corpus).state is State.FOUND:
            console.print(f"{corpus.id}: already complete")
            continue
        try:
            _fetch_one(corpus, console)
        except FetchError as error:
            failed = True
            console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
    if failed:
        raise typer.Exit(1)


def _fetch_one(corpus: Corpus, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(corpus.id, total=None)
        for got in fetch(corpus, data_dir(), lambda done, total: bars.update(bar, completed=done, total=total)):
            confirmed = "as published" if got.confirmed else "no published checksum to compare with"
            console.print(
                f"{corpus.id}: {got.url} sha256 {got.sha256} ({confirmed}) -> {', '.join(got.files)}",
                soft_wrap=True,
                highlight=False,
            )


def _table(statuses: list[Status]) -> Table:
    table = Table("corpus", "what", "status", "rows", "published", "licence", "official source", "fetch")
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
            "yes" if corpus.downloads else "",
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
        "downloads": [{"url": download.url, "sha256": download.sha256} for download in corpus.downloads],
    }


def _console() -> Console:
    console = Console()
    # A pipe has no width; the default of 80 columns would wrap every row of the table.
    return console if console.is_terminal else Console(width=200)
