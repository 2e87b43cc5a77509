"""State of each corpus of the catalogue in the data folder."""

import enum
from dataclasses import dataclass

from training.corpora import counts
from training.corpora.catalogue.catalogue import Corpus
from training.corpora.files import CorpusError, count_rows, data_dir


class State(enum.StrEnum):
    """Whether a corpus is in the data folder."""

    FOUND = "found"
    INCOMPLETE = "incomplete"
    MISSING = "not found"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """Rows of one file as counted, None when it is absent or unreadable, against the published number."""

    file: str
    rows: int | None
    published: int
    problem: str | None

    @property
    def complete(self) -> bool:
        """Whether the file has the published number of rows."""
        return self.rows == self.published


@dataclass(frozen=True, slots=True)
class Status:
    """The files of one corpus in the data folder."""

    corpus: Corpus
    files: tuple[FileStatus, ...]

    @property
    def state(self) -> State:
        """FOUND: all files complete; MISSING: all files absent; otherwise INCOMPLETE."""
        if all(file.complete for file in self.files):
            return State.FOUND
        return State.MISSING if all(file.problem == "absent" for file in self.files) else State.INCOMPLETE

    @property
    def rows(self) -> int:
        """Rows counted in all files."""
        return sum(file.rows or 0 for file in self.files)

    @property
    def published(self) -> int:
        """Rows all files should have."""
        return sum(file.published for file in self.files)


def status(corpus: Corpus) -> Status:
    """Count the rows of a corpus's files."""
    return Status(corpus, tuple(_file_status(file) for file in corpus.files))


def _file_status(file: str) -> FileStatus:
    expected = counts.PUBLISHED[file].rows
    path = data_dir() / file
    if not path.is_file():
        return FileStatus(file, None, expected, "absent")
    try:
        rows = count_rows(path, file)
    except CorpusError as error:
        return FileStatus(file, None, expected, str(error))
    return FileStatus(file, rows, expected, None if rows == expected else f"{rows} rows, {expected} published")
