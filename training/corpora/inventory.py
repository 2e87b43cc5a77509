"""`python -m training data`: the state of each corpus of the catalogue in the data folder."""

import enum
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from training.corpora import catalogue
from training.corpora.catalogue import Corpus, Published
from training.corpora.files import CorpusError, count_rows, data_dir


class State(enum.StrEnum):
    """Whether a corpus is in the data folder."""

    FOUND = "found"
    INCOMPLETE = "incomplete"
    MISSING = "not found"


_COLOURS = {State.FOUND: "green", State.INCOMPLETE: "yellow", State.MISSING: "red"}
_ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Status:
    """The files of one corpus in the data folder."""

    rows: int  # counted in all files
    published: int  # that all files should have
    problems: dict[str, str]  # by file, of those that are absent, unreadable or not the published ones

    @property
    def state(self) -> State:
        """MISSING: every file is absent."""
        if not self.problems:
            return State.FOUND
        return State.INCOMPLETE if self.rows or set(self.problems.values()) != {_ABSENT} else State.MISSING


def status(corpus: Corpus) -> Status:
    """Count the rows of a corpus's files."""
    rows, problems = 0, {}
    for file, published in corpus.files.items():
        counted, problem = _counted(file, published)
        rows += counted
        if problem is not None:
            problems[file] = problem
    return Status(rows, sum(each.rows for each in corpus.files.values()), problems)


def list_corpora() -> None:
    """List every corpus: found, incomplete or not, rows counted and published, licence, official source."""
    found = {name: (corpus, status(corpus)) for name, corpus in catalogue.CATALOGUE.items()}
    table = Table("corpus", "what", "status", "rows", "published", "licence", "official source")
    for column in (3, 4):
        table.columns[column].justify = "right"
    table.columns[6].overflow = "fold"
    for name, (corpus, each) in found.items():
        table.add_row(
            name,
            escape(corpus.what),
            f"[{_COLOURS[each.state]}]{each.state}[/]",
            f"{each.rows:,}" if each.state is not State.MISSING else "-",
            f"{each.published:,}",
            escape(corpus.licence),
            escape(corpus.source),
        )
    console = Console()
    # A pipe has no width; the default of 80 columns would wrap every row of the table.
    console = console if console.is_terminal else Console(width=200)
    console.print(table)
    for name, (_, each) in found.items():
        if each.state is State.INCOMPLETE:
            for file, problem in each.problems.items():
                console.print(f"{name}: {escape(file)}: {escape(problem)}", soft_wrap=True)
    complete = sum(each.state is State.FOUND for _, each in found.values())
    console.print(f"{complete} of {len(found)} found in {escape(str(data_dir()))} (set SEMBLANCE_DATA to move it)")


def _counted(file: str, published: Published) -> tuple[int, str | None]:
    """Rows of a file, and what is wrong with it."""
    path = data_dir() / file
    if not path.is_file():
        return 0, _ABSENT
    try:
        rows = count_rows(path, file)
    except CorpusError as error:
        return 0, str(error)
    return rows, None if rows == published.rows else f"{rows} rows, {published.rows} published"
