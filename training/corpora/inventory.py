"""What the data folder holds of each corpus in the catalogue."""

import enum
from dataclasses import dataclass

from training.corpora import published
from training.corpora.catalogue import Corpus
from training.corpora.files import CorpusError, count_rows, data_dir
from training.vectors import read_vectors


class State(enum.StrEnum):
    """How much of a corpus is in the data folder."""

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
    """What the data folder has of one corpus."""

    corpus: Corpus
    files: tuple[FileStatus, ...]

    @property
    def state(self) -> State:
        """Found: all files complete. Not found: none there at all."""
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
    """Count what the data folder has of a corpus."""
    return Status(corpus, tuple(_file_status(file) for file in corpus.files))


def _file_status(file: str) -> FileStatus:
    expected = published.PUBLISHED[file].rows
    path = data_dir() / file
    if not path.is_file():
        return FileStatus(file, None, expected, "absent")
    try:
        rows = len(read_vectors(path)) if path.suffix == ".npz" else count_rows(path, file)
    except CorpusError as error:
        return FileStatus(file, None, expected, str(error))
    return FileStatus(file, rows, expected, None if rows == expected else f"{rows} rows, {expected} published")
