"""Files of pairs for people: those on which a verdict is least sure, to answer; and those that were left apart.

Columns: `row_1`, `row_2` (of the input, from 1), `text_1`, `text_2`, `score`, `joined` (yes or no), `why`, and `same`,
which a person fills with yes or no; an empty cell says nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple

from core.same_words import same_words
from semblance.errors import BatchError
from semblance.tables.decoding import OtherEncoding
from semblance.tables.formats import open_source
from semblance.tables.output_file import replacing
from semblance.tables.outputs import csv_writer, no_formula
from semblance.tables.rows import Row, Unreadable, numbered

COLUMNS = ("row_1", "row_2", "text_1", "text_2", "score", "joined", "why", "same")
_YES, _NO = ("yes", "y", "1", "1.0", "true"), ("no", "n", "0", "0.0", "false")  # numbers and flags: of JSON, Parquet
ANSWERS: Mapping[str, bool] = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}


class ReviewedPair(NamedTuple):
    """Two rows of the input, from 0, with their texts, and whether a person says that they are the same."""

    rows: tuple[int, int]
    texts: tuple[str, str]
    same: bool
    line: int


class ReviewRow(NamedTuple):
    """A pair for a person to answer; its rows are counted from 0."""

    rows: tuple[int, int]
    texts: tuple[str, str]
    score: float | None  # None: no model read it
    joined: bool
    why: str
    same: bool | None  # what a person said before


def review_path(output: Path) -> Path:
    """Where the review file of an output lies: clusters.csv has clusters.review.csv."""
    return output.parent / f"{output.stem}.review.csv"


def apart_path(output: Path) -> Path:
    """Where the pairs lie that are near and were not joined: clusters.csv has clusters.apart.csv."""
    return output.parent / f"{output.stem}.apart.csv"


def check_no_answers_lost(path: Path, given: Path | None, *, overwrite: bool) -> None:
    """Check that writing a review file loses no person's answers.

    Args:
        path: where it will lie.
        given: the file whose answers are read, and written again; None: there is none.
        overwrite: whether a file may be replaced that is `given`, or has no other answer.

    Raises:
        BatchError: there is a file that may not be replaced, or `given` has columns that are not written again.
    """
    if not path.exists():
        return
    if not overwrite:
        raise BatchError(f"{path} exists; --overwrite replaces it")
    rows = [row for _, row in _rows(path)]
    if given is not None and given.exists() and path.samefile(given):
        if other := {name for row in rows if isinstance(row, dict) for name in row} - {*COLUMNS}:
            raise BatchError(f"{path} has a column {min(other)!r}, which would be lost: give it under another name")
        return
    read = [] if given is None or not given.exists() else read_review(given)
    known = {_answer(pair.texts, pair.same) for pair in read}
    for row in rows:
        if isinstance(row, dict) and set(row) == set(COLUMNS):
            said = _said(row)
            if not said or _answer((str(row["text_1"]), str(row["text_2"])), ANSWERS.get(said)) in known:
                continue
        raise BatchError(f"{path} has answers, or is something else: give it by --reviewed, or move it")


def _answer(texts: tuple[str, str], same: bool | None) -> tuple[frozenset[str], bool | None]:
    """An answer about two texts, whichever rows have them, perhaps with the apostrophe of `--quote-formulas`."""
    return frozenset(same_words(text.removeprefix("'")) for text in texts), same


def _rows(path: Path) -> Iterator[tuple[int, Row | Unreadable]]:
    try:
        return numbered(open_source(path))
    except OtherEncoding as error:  # --encoding is that of the input
        raise BatchError(f"{error.found}: save it as UTF-8 (in Excel: CSV UTF-8)") from None


def _said(row: Row) -> str:
    """What stands in `same`; empty: nothing."""
    return "" if row["same"] is None else str(row["same"]).strip().lower()


@contextmanager
def writing_review(path: Path, pairs: Iterable[ReviewRow], *, quote_formulas: bool = False) -> Iterator[None]:
    """Write pairs in the order given; they take an earlier file's place at the end of a block without errors.

    Raises:
        OSError: the disk is full.
    """
    shown = no_formula if quote_formulas else str
    with replacing(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv_writer(text)
        writer.writerow(COLUMNS)
        for pair in pairs:
            first, second = pair.rows
            joined = "yes" if pair.joined else "no"
            same = "" if pair.same is None else "yes" if pair.same else "no"
            writer.writerow(
                [
                    first + 1,
                    second + 1,
                    *map(shown, pair.texts),
                    "" if pair.score is None else f"{pair.score:.3f}",
                    joined,
                    shown(pair.why),
                    same,
                ]
            )
        text.detach()
        file.flush()
        yield


def read_review(path: Path) -> list[ReviewedPair]:
    """The pairs that a person answered, in a file as it is written here, however the input was.

    Raises:
        BatchError: a column is missing, a cell is neither yes nor no, a row number is none, or nothing is answered.
    """
    found: list[ReviewedPair] = []
    for line, row in _rows(path):
        if isinstance(row, Unreadable):
            raise BatchError(f"{path}, line {line}: {row.reason}")
        if (pair := _answered(path, line, row)) is not None:
            found.append(pair)
    if not found:
        raise BatchError(f"{path}: no row says yes or no in the column 'same'")
    return found


def _answered(path: Path, line: int, row: Row) -> ReviewedPair | None:
    if lacking := [name for name in ("row_1", "row_2", "text_1", "text_2", "same") if name not in row]:
        raise BatchError(f"{path}: there is no column {lacking[0]!r}; it should be a review file of `semblance dedupe`")
    said = _said(row)
    if not said:
        return None
    if said not in ANSWERS:
        raise BatchError(f"{path}, line {line}: 'same' must be yes or no, found {said!r}")
    try:
        first, second = (int(str(row[name])) - 1 for name in ("row_1", "row_2"))
    except ValueError:
        raise BatchError(f"{path}, line {line}: row_1 and row_2 must be numbers of rows") from None
    return ReviewedPair((first, second), (str(row["text_1"]), str(row["text_2"])), ANSWERS[said], line)
