"""Labelled pairs of a user: .csv, .tsv, .jsonl or .parquet, with columns that say what the pairs teach.

    a, b, score             ratings on any scale
    a, b, label             1 or 0; or entailment, neutral, contradiction, not_entailment
    question, answer, label 1 or 0: answers to be ranked

No row is lost without a word: a row that does not fit becomes a fault with its line and the reason.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

from semblance.errors import BatchError
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND, open_source
from semblance.tables.rows import BadRow, Row, RowSource, Unreadable, columns_of, numbered, text_of

Kind = Literal["score", "label", "ranking", "entailment"]
TEXTS = (("a", "b"), ("question", "answer"))
VALUES = ("score", "label")
ENTAILMENT = ("entailment", "neutral", "contradiction", "not_entailment")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+").fullmatch
LARGEST = 1e100  # score, and end of a scale: sums of squares stay numbers
_SHOWN = 5  # faults in a message


class PairsError(BatchError):
    """A file of pairs that cannot be used; a message for the user."""


class RowFault(NamedTuple):
    """A row that is left out."""

    line: int  # of a Parquet file its row; both from 1
    reason: str


class OwnPair(NamedTuple):
    """Two texts with their score or label."""

    a: str
    b: str
    target: float | None  # its score, or 1 and 0 for its label; None: the label is a word
    label: str | None
    group: str  # pairs of one question have the same; empty: none


class OwnPairs(NamedTuple):
    """What a file holds."""

    kind: Kind
    columns: tuple[str, str, str]
    pairs: list[OwnPair]
    lines: list[int]  # of each pair
    faults: list[RowFault]
    scale: tuple[float, float]  # lowest and highest score there can be; 0 and 1 where there are labels
    place: str  # what `lines` counts: line or row
    notes: Sequence[str]  # what a user should know of how the file was read

    def describe(self, faults: Sequence[RowFault]) -> str:
        """The first faults of each reason, and how many more there are."""
        firsts = sorted({fault.reason: fault for fault in reversed(faults)}.values())[:_SHOWN]
        shown = "; ".join(f"{self.place} {fault.line}: {fault.reason}" for fault in firsts)
        more = len(faults) - len(firsts)
        return f"{shown}; and {more:,} more {'rows' if more > 1 else 'row'}" if more > 0 else shown


def read_own(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    kind: Kind | None = None,
    scale: tuple[float, float] | None = None,
    read_as: FileFormat = AS_FOUND,
) -> OwnPairs:
    """Read a file of labelled pairs.

    Args:
        path: the file; empty lines are skipped.
        columns: names of the two texts' columns and of the score's or label's; None: those of the table above.
        kind: what the third column holds; None: found out from its name and its values.
        scale: lowest and highest score there can be; None: those in the file.
        read_as: encoding and separator of the file.

    Raises:
        BatchError: the file cannot be opened or decoded, its quotes are not closed, or its suffix is unknown.
        PairsError: a column is missing or could be either of two, the scale does not rise, or all scores are equal.
    """
    if scale is not None and not -LARGEST <= scale[0] < scale[1] <= LARGEST:
        raise PairsError(f"the scale must rise, got {scale[0]:g} to {scale[1]:g} (at most {LARGEST:g})")
    if columns is not None and (len(columns) != 3 or len({*columns}) != 3):
        raise PairsError(f"expected three columns (two texts and the label), found {', '.join(columns)}")
    source = open_source(path, None if columns is None else list(columns), read_as=read_as)
    names = _columns(path, source, columns)
    place = "row" if path.suffix.lower() == ".parquet" else "line"
    texts: list[tuple[int, str, str, Any]] = []
    faults: list[RowFault] = []
    for number, row in numbered(source):
        read = _texts(row, names)
        if isinstance(read, str):
            faults.append(RowFault(number, read))
        else:
            texts.append((number, *read))
    plain = _with_point if source.decimal_comma else _as_written
    found = kind or _kind(names, [plain(value) for *_, value in texts], scale)
    pairs: list[OwnPair] = []
    lines: list[int] = []
    for number, a, b, value in texts:
        taken = _taken(found, names[2], value, plain(value), scale)
        if isinstance(taken, str):
            faults.append(RowFault(number, taken))
            continue
        target, label = taken
        pairs.append(OwnPair(a, b, target, label, group=a if found == "ranking" else ""))
        lines.append(number)
    faults.sort()
    return OwnPairs(found, names, pairs, lines, faults, scale or _range(path, found, pairs), place, source.notes)


def _columns(path: Path, source: RowSource, wanted: Sequence[str] | None) -> tuple[str, str, str]:
    present = source.columns
    if present is None and wanted is None:  # JSON Lines
        present = columns_of(source)
    shown = ", ".join(map(repr, present or ())) or "none"
    if wanted is not None:
        if present is not None and (absent := [name for name in wanted if name not in present]):
            raise PairsError(f"{path}: no column {absent[0]!r}; there are {shown}")
        a, b, value = wanted
        return a, b, value
    assert present is not None
    texts = [pair for pair in TEXTS if set(pair) <= set(present)]
    values = [name for name in VALUES if name in present]
    if not texts or not values:
        hint = "rename them, or give --column"
        raise PairsError(
            f"{path}: expected columns a, b and score; a, b and label; or question, answer and label; "
            f"there are {shown} ({hint})"
        )
    if len(texts) > 1 or len(values) > 1:
        twice = texts if len(texts) > 1 else values
        raise PairsError(f"{path}: has {' and '.join(map(str, twice))}: name the three columns to read (--column)")
    return (*texts[0], values[0])


def _texts(row: Row | Unreadable, columns: tuple[str, str, str]) -> tuple[str, str, Any] | str:
    """The texts of a row and its score or label as it stands there, or what is wrong with the row."""
    if isinstance(row, Unreadable):
        return row.reason
    a, b, name = columns
    try:
        texts = text_of(row.get(a), a), text_of(row.get(b), b)
    except BadRow as why:
        return f"{why.column}: {why.reason}"
    value = row.get(name)
    return f"{name}: there is none" if value is None else (*texts, value.strip() if isinstance(value, str) else value)


def _kind(columns: tuple[str, str, str], values: Sequence[Any], scale: tuple[float, float] | None) -> Kind:
    words = sum(isinstance(value, str) and value.lower() in ENTAILMENT for value in values)
    yes_or_no = sum(_yes_or_no(value) is not None for value in values)
    if columns[2] == "score" or scale is not None:
        return "score"
    if columns[2] != "label" and columns[:2] not in TEXTS and not words and yes_or_no < len(values):
        return "score"  # columns of other names: their values say what they are
    if words > yes_or_no:
        return "entailment"
    return "ranking" if columns[:2] == TEXTS[1] else "label"


def _taken(
    kind: Kind, column: str, value: Any, plain: Any, scale: tuple[float, float] | None
) -> tuple[float | None, str | None] | str:
    """Target and label of a value, which is also given without a decimal comma, or what is wrong with it."""
    if kind == "entailment":
        word = value.lower() if isinstance(value, str) else value
        return (None, word) if word in ENTAILMENT else f"{column}: expected {', '.join(ENTAILMENT)}, found {value!r}"
    if kind != "score":
        truth = _yes_or_no(plain)
        return f"{column}: expected 0 or 1, found {value!r}" if truth is None else (truth, str(int(truth)))
    number = _number(plain)
    if number is None:
        return f"{column}: {value!r} is no number"
    low, high = scale or (-LARGEST, LARGEST)
    if not low <= number <= high:
        return f"{column}: {value!r} is no number from {low:g} to {high:g}"
    return number, None


def _with_point(value: Any) -> Any:
    """A number written with a decimal comma, as spreadsheets of half of Europe do, with a point instead."""
    return value.replace(",", ".") if isinstance(value, str) and _DECIMAL_COMMA(value) else value


def _as_written(value: Any) -> Any:
    return value


def _yes_or_no(value: Any) -> float | None:
    number = float(value) if isinstance(value, bool) else _number(value)
    return number if number in (0.0, 1.0) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _range(path: Path, kind: Kind, pairs: Sequence[OwnPair]) -> tuple[float, float]:
    scores = [pair.target for pair in pairs if pair.target is not None] if kind == "score" else []
    if not scores:
        return 0.0, 1.0
    if min(scores) == max(scores):
        raise PairsError(f"{path}: all scores are {scores[0]:g}")
    return min(scores), max(scores)
