"""Files of an FAQ and of questions whose right entry is known: .csv, .tsv, .jsonl or .parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from core.ranking import MOST_ENTRIES
from semblance.batch.delimited import FileFormat
from semblance.batch.formats import AS_FOUND, open_source
from semblance.batch.rows import BadRow, Row, Unreadable, numbered, text_of
from semblance.errors import BatchError
from semblance.faq.saved import FAQEntry

NONE = -1  # in the place of an entry: the FAQ has no answer
FEWEST_ENTRIES = 2
FEWEST_QUESTIONS = 10
FEWEST_OF_A_KIND = 3  # questions with an answer, and questions without


class Faq(NamedTuple):
    """n entries, and what a user should know of how the file was read."""

    entries: Sequence[FAQEntry]
    notes: Sequence[str] = ()


class Questions(NamedTuple):
    """m questions, and the place of the right entry of each, or `NONE`."""

    texts: Sequence[str]
    right: Sequence[int]
    notes: Sequence[str] = ()


def read_faq(path: Path, read_as: FileFormat = AS_FOUND) -> Faq:
    """The entries of a file with the columns question and answer; without a column id they are numbered from 1.

    Raises:
        BatchError: the file cannot be read, a column is missing, a row has a fault or an id comes twice, or there are
            fewer than two entries or more than a request may have.
    """
    rows, notes = _rows(path, ("question", "answer"), read_as)
    entries: list[FAQEntry] = []
    seen: dict[str, str] = {}
    for place, row in rows:
        name = _id(row) or str(len(entries) + 1)
        if name in seen:
            raise BatchError(f"{path}: {place}: id {name!r} is that of {seen[name]} too")
        seen[name] = place
        entries.append(FAQEntry(name, _text(path, place, row, "question"), _text(path, place, row, "answer")))
    if len(entries) < FEWEST_ENTRIES:
        raise BatchError(f"{path}: an FAQ has {FEWEST_ENTRIES} entries or more, found {len(entries)}")
    if len(entries) > MOST_ENTRIES:
        raise BatchError(f"{path}: {len(entries):,} entries; a request may have {MOST_ENTRIES:,}")
    return Faq(entries, notes)


def read_questions(path: Path, faq: Faq, read_as: FileFormat = AS_FOUND) -> Questions:
    """The questions of a file with the columns question and id, which is empty where the FAQ has no answer.

    Raises:
        BatchError: the file cannot be read, a column is missing, a row has a fault or an id that is no entry's, or
            there are too few questions with an answer or without.
    """
    places = {entry.id: place for place, entry in enumerate(faq.entries)}
    rows, notes = _rows(path, ("question", "id"), read_as)
    texts: list[str] = []
    right: list[int] = []
    for place, row in rows:
        name = _id(row)
        if name and name not in places:
            raise BatchError(f"{path}: {place}: no entry of the FAQ has the id {name!r}; empty: it has no answer")
        texts.append(_text(path, place, row, "question"))
        right.append(places[name] if name else NONE)
    without = right.count(NONE)
    if len(texts) < FEWEST_QUESTIONS or min(without, len(right) - without) < FEWEST_OF_A_KIND:
        raise BatchError(
            f"{path}: expected {FEWEST_QUESTIONS} questions or more, {FEWEST_OF_A_KIND} or more of them with an id and "
            f"{FEWEST_OF_A_KIND} without, which the FAQ does not answer; found {len(texts)}, {without} without an id"
        )
    return Questions(texts, right, notes)


def _rows(path: Path, columns: Sequence[str], read_as: FileFormat) -> tuple[Iterator[tuple[str, Row]], Sequence[str]]:
    """The rows that are not empty, each with its place for messages."""
    source = open_source(path, None, read_as=read_as)
    if source.columns is not None and (absent := [name for name in columns if name not in source.columns]):
        raise BatchError(f"{path}: no column {absent[0]!r}; there are {', '.join(map(repr, source.columns)) or 'none'}")
    kind = "row" if path.suffix.lower() == ".parquet" else "line"

    def rows() -> Iterator[tuple[str, Row]]:
        for line, row in numbered(source):
            if isinstance(row, Unreadable):
                raise BatchError(f"{path}: {kind} {line}: {row.reason}")
            yield f"{kind} {line}", row

    return rows(), source.notes


def _text(path: Path, place: str, row: Row, column: str) -> str:
    try:
        return text_of(row.get(column), column)
    except BadRow as why:
        raise BatchError(f"{path}: {place}: {why.column}: {why.reason}") from None


def _id(row: Row) -> str:
    value = row.get("id")
    return "" if value is None else str(value).strip()
