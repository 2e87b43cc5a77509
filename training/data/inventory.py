"""`python -m training data`: which corpora of the catalogue are in the data folder."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from training.data.catalogue import CATALOGUE, Corpus
from training.data.files import data_dir


def absent(corpus: Corpus) -> list[str]:
    """The files of a corpus that are not in the data folder; what is in them is checked when they are read."""
    return [file for file in corpus.files if not (data_dir() / file).is_file()]


def list_corpora() -> None:
    """List every corpus: found, incomplete or not, rows published, licence, official source."""
    missing = {name: absent(corpus) for name, corpus in CATALOGUE.items()}
    table = Table("corpus", "what", "status", "rows", "licence", "official source")
    table.columns[3].justify = "right"
    table.columns[5].overflow = "fold"
    for name, corpus in CATALOGUE.items():
        status = "[green]found[/]"
        if missing[name]:
            status = "[red]not found[/]" if len(missing[name]) == len(corpus.files) else "[yellow]incomplete[/]"
        rows = f"{sum(each.rows for each in corpus.files.values()):,}"
        table.add_row(name, escape(corpus.what), status, rows, escape(corpus.licence), escape(corpus.source))
    console = Console()
    # A pipe has no width; the default of 80 columns would wrap every row of the table.
    console = console if console.is_terminal else Console(width=200)
    console.print(table)
    for name, files in missing.items():
        if 0 < len(files) < len(CATALOGUE[name].files):
            console.print(f"{name}: without {escape(', '.join(files))}", soft_wrap=True)
    complete = sum(not files for files in missing.values())
    console.print(f"{complete} of {len(missing)} found in {escape(str(data_dir()))} (set SEMBLANCE_DATA to move it)")
