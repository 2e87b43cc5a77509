"""Files of an FAQ and of questions whose right entry is known: .csv, .tsv, .jsonl or .parquet.

A column is found by its name whatever its case, and may have another that the user gives.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from core.ranking import MAX_ENTRIES
from semblance.client.faq import FAQEntry
from semblance.errors import BatchError
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND, open_source
from semblance.tables.rows import BadRow, Unreadable, columns_of, no_column, numbered, text_of

NONE = -1  # in the place of an entry: the FAQ has no answer
FEWEST_ENTRIES = 2
FEWEST_QUESTIONS = 10
FEWEST_OF_A_KIND = 3  # questions with an answer, and questions without
COLUMNS: Mapping[str, tuple[str, ...]] = {  # what a column holds: its names, of which the first that is there is read
    "question": ("question",),  # of an entry
    "answer": ("answer",),
    "id": ("id",),
    "asked": ("question",),  # what people ask
    "expected": ("expected", "id"),  # the id of the entry that answers it
}


class Faq(NamedTuple):
    """n entries, and what a user should know of how the file was read."""

    entries: Sequence[FAQEntry]
    notes: Sequence[str] = ()


class Questions(NamedTuple):
    """m questions, and the place of the right entry of each, or `NONE`."""

    texts: Sequence[str]
    right: Sequence[int]
    notes: Sequence[str] = ()


def columns_given(options: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`COLUMNS` with the names of options such as `answer=Reply`.

    Raises:
        BatchError: an option names no column of an FAQ.
    """
    names = dict(COLUMNS)
    for option in options:
        what, equals, name = option.partition("=")
        if what not in COLUMNS or not equals or not name:
            raise BatchError(f"--column {option}: with --faq, expected {', '.join(f'{each}=NAME' for each in COLUMNS)}")
        names[what] = (name,)
    return names


def read_faq(path: Path, read_as: FileFormat = AS_FOUND, columns: Mapping[str, Sequence[str]] = COLUMNS) -> Faq:
    """The entries of a file with the columns question and answer; without a column id they are numbered from 1.

    Raises:
        BatchError: the file cannot be read, a column is missing, a row has a fault or an id comes twice, or there are
            fewer than two entries or more than a request may have.
    """
    needed = ("question", "answer") if columns["id"] == COLUMNS["id"] else ("question", "answer", "id")
    rows, notes = _rows(path, {each: columns[each] for each in ("question", "answer", "id")}, needed, read_as)
    entries: list[FAQEntry] = []
    seen: dict[str, str] = {}
    for place, row in rows:
        name = _id(row["id"]) or str(len(entries) + 1)
        if name in seen:
            raise BatchError(f"{path}: {place}: id {name!r} is that of {seen[name]} too")
        seen[name] = place
        question, answer = (_text(path, place, row[each], columns[each][0]) for each in ("question", "answer"))
        entries.append(FAQEntry(name, question, answer))
    if len(entries) < FEWEST_ENTRIES:
        raise BatchError(f"{path}: an FAQ has {FEWEST_ENTRIES} entries or more, found {len(entries)}")
    if len(entries) > MAX_ENTRIES:
        raise BatchError(f"{path}: {len(entries):,} entries; a request may have {MAX_ENTRIES:,}")
    return Faq(entries, notes)


def read_questions(
    path: Path, faq: Faq, read_as: FileFormat = AS_FOUND, columns: Mapping[str, Sequence[str]] = COLUMNS
) -> Questions:
    """The questions of a file with the columns question and expected, which is empty where the FAQ has no answer.

    Raises:
        BatchError: the file cannot be read, a column is missing, a row has a fault or an id that is no entry's, or
            there are too few questions with an answer or without.
    """
    places = {entry.id: place for place, entry in enumerate(faq.entries)}
    rows, notes = _rows(path, {each: columns[each] for each in ("asked", "expected")}, ("asked", "expected"), read_as)
    texts: list[str] = []
    right: list[int] = []
    for place, row in rows:
        name = _id(row["expected"])
        if name and name not in places:
            raise BatchError(f"{path}: {place}: no entry of the FAQ has the id {name!r}; empty: it has no answer")
        texts.append(_text(path, place, row["asked"], columns["asked"][0]))
        right.append(places[name] if name else NONE)
    without = right.count(NONE)
    if len(texts) < FEWEST_QUESTIONS or min(without, len(right) - without) < FEWEST_OF_A_KIND:
        raise BatchError(
            f"{path}: expected {FEWEST_QUESTIONS} questions or more, {FEWEST_OF_A_KIND} or more of them with an id and "
            f"{FEWEST_OF_A_KIND} without, which the FAQ does not answer; found {len(texts)}, {without} without an id"
        )
    return Questions(texts, right, notes)


def _rows(
    path: Path, wanted: Mapping[str, Sequence[str]], needed: Sequence[str], read_as: FileFormat
) -> tuple[Iterator[tuple[str, Mapping[str, Any]]], Sequence[str]]:
    """Of each row that is not empty its place for messages, and the values of the wanted columns; None: there is none.

    Raises:
        BatchError: the file cannot be read, or a needed column is missing; of JSON Lines, where no row has it.
    """
    source = open_source(path, None, read_as=read_as)
    present = columns_of(source)
    names = {what: _name(given, present) for what, given in wanted.items()}
    if absent := [wanted[what][0] for what in needed if names[what] is None]:
        raise no_column(source, absent[0], present)
    kind = "row" if path.suffix.lower() == ".parquet" else "line"

    def rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
        for line, row in numbered(source):
            if isinstance(row, Unreadable):
                raise BatchError(f"{path}: {kind} {line}: {row.reason}")
            yield f"{kind} {line}", {what: None if name is None else row.get(name) for what, name in names.items()}

    return rows(), source.notes


def _name(given: Sequence[str], present: Sequence[str]) -> str | None:
    """The first of the given names that is there as it is written, or but for its case."""
    plain = {name.strip().casefold(): name for name in reversed(present)}
    found = (name if name in present else plain.get(name.casefold()) for name in given)
    return next((name for name in found if name is not None), None)


def _text(path: Path, place: str, value: Any, column: str) -> str:
    try:
        return text_of(value, column)
    except BadRow as why:
        raise BatchError(f"{path}: {place}: {why.column}: {why.reason}") from None


def _id(value: Any) -> str:
    if isinstance(value, float):  # a column of whole numbers with gaps, as pandas writes it
        value = None if value != value else int(value) if value.is_integer() else value
    return "" if value is None else str(value).strip()
