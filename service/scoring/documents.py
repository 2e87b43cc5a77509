"""A document in plain text or Markdown -> its sentences, list items and table rows, with the headings before them.

Read line by line. A heading (Markdown's, underlined, in bold, numbered, or a short line without a full stop above a
paragraph or a list) is no sentence, and neither is a line that ends in a colon above a list: both are context of what
follows. Short lines without full stops that follow each other are sentences of their own, as items of a list are.
Items are not read together, as sentences are: of "Single: 80 euros", "Double: 120 euros" any price would be right.
A row of a table (with bars, tabs, or commas beneath its columns' names) is one sentence, with its column's names.
Positions are those of the text given.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple
from unicodedata import category

from service.scoring.markup import marks_of, plain, said_in_place
from service.scoring.sentences import begins, spans_of

LONGEST = 500  # characters of a sentence; longer ones are cut, so that a model reads all of it
_SHORT_WORDS, _SHORT_CHARS = 10, 70  # of a line that may be a heading without markup
_FEW_WORDS = 3  # of a heading directly above a number, with which a sentence may go on
_PLAIN = 10  # level of headings without markup, beneath Markdown's six; those of numbers: 10 + how many
_HEADING_CHARS = 120  # of one heading, or of a line above a list, that is kept
_MAX_HEADINGS = 8  # of a sentence, the innermost: lists may stand in lists without end
_INVISIBLE = frozenset(["Mn", "Me", "Cf", "Cs", "Co", "Cc", "Zs", "Zl", "Zp"])
_ENDS_OF_SENTENCES = frozenset(".!?:")
_STOPS = frozenset(".!?;,\u2026")  # that a heading does not end in
_NAME_CHARS = 60  # of a column's name
_NAMES_SHARE = 4  # times a document's own characters, that the names of columns add to its rows at most
_NUMBER = re.compile(r"(?:section |article |chapter |part |\u00a7 ?)?(\d{1,3}(?:\.\d{1,3})*)[.):]?\s", re.IGNORECASE)
_MARKDOWN = re.compile(r"(#{1,6})\s+")
_RULE = re.compile(r"([-=*_])(?:\s*+\1){2,}+\s*+")
_SEPARATOR = re.compile(r"\|?[\s:]*+-[\s:|-]*+")  # between a table's names and its rows
_BAR = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"(```+|~~~+)[^`]*")
_BOLD = re.compile(r"(?:\*\*|__)(?!\s)([^*_]++)(?:\*\*|__):?")


class Sentence(NamedTuple):
    """A sentence, a list item or a table row, or part of one that is very long.

    Attributes:
        start: its first character in the document, from 0.
        end: after its last one.
        text: without markup, white space as single spaces.
        headings: those that it stands under, outermost first, then the line above its list; 8 of 120
            characters at most.
        block: the same for sentences that follow each other under the same headings; of an item or a row its own.
    """

    start: int
    end: int
    text: str
    headings: tuple[str, ...]
    block: int


class _Line(NamedTuple):
    start: int
    end: int
    text: str  # stripped
    indent: int


class _Item(NamedTuple):
    indent: int
    lead: str  # what its children stand under; empty: nothing


def sentences_in(document: str) -> list[Sentence]:
    """All of a document that have a visible character, in order; none where no line has a word that is no heading.

    What is struck out, commented out or an open task ("- [ ] Repair it.") states nothing, and is left out.
    """
    return [sentence for sentence in _Reader(said_in_place(document)).read() if _is_visible(sentence.text)]


def _is_visible(text: str) -> bool:
    return any(category(char) not in _INVISIBLE for char in text)


class _Reader:
    def __init__(self, document: str) -> None:
        self._document = document
        self._lines = list(_lines_of(document))
        self._marks = list(marks_of([line.text for line in self._lines]))
        self._code = _code_in(self._lines)
        self._headings: list[tuple[int, str]] = []
        self._items: list[_Item] = []
        self._lead = ""  # a line above a list
        self._block = 0
        self._names_left = _NAMES_SHARE * len(document)  # characters of columns' names that rows may still repeat

    def read(self) -> Iterator[Sentence]:
        lines, i = self._lines, 0
        while i < len(lines):
            line = lines[i]
            if not line.text or _FENCE.fullmatch(line.text) or _RULE.fullmatch(line.text):
                i += 1
            elif mark := self._separated_by(i):
                rows, i = self._table(i, mark)
                yield from rows
            elif (found := self._heading(i)) is not None:
                level, title, i = found
                self._open(level, title)
            elif self._is_row(i):
                rows, i = self._table(i)
                yield from rows
            else:
                stop = self._paragraph_end(i)
                yield from self._paragraph(i, stop)
                i = stop

    def _open(self, level: int, title: str) -> None:
        """A heading: it closes those of its level and below."""
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append((level, title[:_HEADING_CHARS]))
        self._items, self._lead = [], ""
        self._block += 1

    def _heading(self, i: int) -> tuple[int, str, int] | None:
        """The level and text of a heading that begins at a line, and the line after it."""
        line = self._lines[i]
        if i in self._code:
            return None
        if (match := _MARKDOWN.match(line.text)) is not None:
            return len(match[1]), plain(line.text[match.end() :].rstrip("# ")), i + 1
        below = self._lines[i + 1].text if i + 1 < len(self._lines) else ""
        marked = self._marks[i]
        if below[:1] in ("=", "-") and len(set(below)) == 1 and len(below) > 2 and not marked:
            return (1 if below[0] == "=" else 2), plain(line.text), i + 2
        if (bold := _BOLD.fullmatch(line.text)) is not None and len(line.text) <= _SHORT_CHARS:
            title = plain(bold[1])
            return (_PLAIN, title, i + 1) if title[-1:] not in _STOPS and self._is_above_text(i) else None
        above = i == 0 or not self._lines[i - 1].text
        if above and (number := _NUMBER.match(line.text)) is not None:
            level = _PLAIN + number[1].count(".") + 1
            follows = self._next(i)
            again = None if follows is None else _NUMBER.match(self._lines[follows].text)
            # A list, if its items have one form of number.
            if again and again[1].count(".") <= number[1].count("."):
                return None
            is_title = _is_title(line.text[number.end() :]) and self._is_above_text(i)
            return (level, plain(line.text), i + 1) if is_title else None
        if marked or not _is_title(line.text):
            return None
        follows = self._next(i)
        if line.text[-1] == ":" and follows is not None and self._marks[follows]:
            return None  # it leads that list alone
        if below:
            is_new = begins(below) and (not below[0].isdigit() or len(line.text.split()) <= _FEW_WORDS)
            starts = above and (is_new or self._marks[i + 1] or line.text[-1] == ":")
            if not starts or len(line.text) > _SHORT_CHARS - 20:
                return None
        return (_PLAIN, plain(line.text), i + 1) if self._is_above_text(i) else None

    def _is_above_text(self, i: int) -> bool:
        """Whether a paragraph, a list or a table stands under a line: neither a heading nor a line like it."""
        if (place := self._next(i)) is None:
            return False
        text = self._lines[place].text
        if place in self._code:
            return True
        if _MARKDOWN.match(text) or _BOLD.fullmatch(text) or _RULE.fullmatch(text):
            return False
        if self._lines[i].text.endswith(":") or self._marks[place] or self._separated_by(place):
            return True
        stop = self._paragraph_end(place)
        is_block = place > i + 1 and stop > place + 1  # of lines, beneath a blank one
        return is_block or not self._are_apart(place, stop)

    def _are_apart(self, i: int, stop: int) -> bool:
        """Whether lines are sentences of their own.

        All end in semicolons, or all are as "adults: 5 euros", or each begins as a sentence and one is short and has
        no full stop. A line goes on with the number that alone is beneath it.
        """
        texts = [line.text for line in self._lines[i:stop]]
        entries = all(": " in f"{text} " and _is_short(text.rstrip(",")) for text in texts)
        if len(texts) > 1 and (entries or all(text[-1] == ";" for text in texts[:-1])):
            return True
        if len(texts) == 2 and texts[1][0].isdigit() and not texts[0][0].isdigit():
            return False
        return all(map(begins, texts)) and any(_is_short(plain(text)) for text in texts)

    def _is_row(self, i: int) -> bool:
        return _is_row(self._lines[i].text) or self._is_named(i)

    def _is_named(self, i: int) -> bool:
        """Whether a line has the names of a table's columns: a line of dashes with bars is beneath it."""
        below = self._lines[i + 1].text if i + 1 < len(self._lines) else ""
        return "|" in self._lines[i].text and "|" in below and _SEPARATOR.fullmatch(below) is not None

    def _next(self, i: int) -> int | None:
        """The place of the next line that is not empty."""
        places = range(i + 1, min(i + 9, len(self._lines)))
        return next((place for place in places if self._lines[place].text), None)

    def _paragraph_end(self, i: int) -> int:
        """The line after the paragraph, or the list item, that begins at a line."""
        stop = i + 1
        while stop < len(self._lines):
            text = self._lines[stop].text
            if not text or self._marks[stop] or _MARKDOWN.match(text) or _FENCE.fullmatch(text) or text[0] == "|":
                break
            if _RULE.fullmatch(text) or self._is_named(stop) or (_BOLD.fullmatch(text) and len(text) <= _SHORT_CHARS):
                break
            leads = text[-1] == ":" and stop + 1 < len(self._lines) and self._marks[stop + 1] and begins(text)
            if leads and self._marks[i] and self._lines[stop].indent <= self._lines[i].indent:
                break  # another list
            stop += 1
        return stop

    def _paragraph(self, i: int, stop: int) -> Iterator[Sentence]:
        first = self._lines[i]
        start, end = first.start, self._lines[stop - 1].end
        marked = self._marks[i]
        place = self._next(stop - 1)
        follows = _Line(end, end, "", 0) if place is None else self._lines[place]
        is_item = place is not None and self._marks[place] > 0
        deeper = is_item and follows.indent > first.indent
        if marked:
            start += marked
            self._items = [item for item in self._items if item.indent < first.indent]
            self._block += 1
        elif first.indent <= (self._items[0].indent if self._items else 0):
            self._block += bool(self._items)
            self._items, self._lead = [], ""
        spans = list(spans_of(self._document, start, end))
        if apart := not marked and self._are_apart(i, stop):
            spans = [span for line in self._lines[i:stop] for span in spans_of(self._document, line.start, line.end)]
        context = self._context()
        whole = plain(self._document[slice(*spans[-1])]) if spans else ""
        last = _shortened(whole)
        leads = last.endswith(":") or (marked and deeper and len(spans) == 1 and _is_title(last))
        if leads and ((place is not None and self._is_row(place)) or (deeper if marked else is_item)):
            if not marked:
                self._lead = last.rstrip(":")
            if last == whole:  # what is cut is a sentence too
                spans.pop()
        else:
            last = ""
        if marked:
            self._items.append(_Item(first.indent, last.rstrip(":")))
        for each in spans:
            self._block += apart
            for a, b in _pieces(self._document, *each):
                if text := plain(self._document[a:b]):
                    yield Sentence(a, b, text, context, self._block)
        if not marked and (leads or apart):
            self._block += 1

    def _context(self) -> tuple[str, ...]:
        leads = (self._lead, *(item.lead for item in self._items))
        return tuple(title for title in (*(title for _, title in self._headings), *leads) if title)[-_MAX_HEADINGS:]

    def _separated_by(self, i: int) -> str:
        """The mark between columns' names in a line, and between the cells of those below; empty: it is no table.

        Two rows follow the names, or one with a digit. No space follows the marks between names, as one does in prose;
        an item of a list has none.
        """
        names = self._lines[i].text
        for mark in "" if self._marks[i] else ";,":
            cells = _split(names, mark)
            if len(cells) < 2 or names[-1] in _ENDS_OF_SENTENCES or not all(map(_begins_a_name, cells)):
                continue
            rows = list(islice(self._rows_below(i, mark, len(cells)), 2))
            if len(rows) == 2 or (rows and any(map(str.isdigit, rows[0]))):
                return mark
        return ""

    def _rows_below(self, i: int, mark: str, cells: int) -> Iterator[str]:
        lines = (self._lines[place].text for place in range(i + 1, len(self._lines)))
        return takewhile(lambda text: len(_split(text, mark)) == cells, lines)

    def _table(self, i: int, mark: str = "") -> tuple[list[Sentence], int]:
        """The rows of a table, and the line after it; a `mark` stands between cells, else bars or tabs."""
        stop = i
        if mark:
            stop += 1 + sum(1 for _ in self._rows_below(i, mark, len(_split(self._lines[i].text, mark))))
        separated = self._is_named(i)
        while not mark and stop < len(self._lines) and (text := self._lines[stop].text):
            if not (_is_row(text) or (separated and "|" in text)):
                break
            stop += 1
        lines = self._lines[i:stop]
        names: list[str] = []
        if separated or mark or self._begins_with_names(lines):
            names, lines = [name[:_NAME_CHARS] for name in _cells(lines[0].text, mark)], lines[2 if separated else 1 :]
        rows, context = [], self._context()
        for line in lines:
            cells = _cells(line.text, mark)
            text = self._row(cells, names) if names or len(cells) != 2 else ": ".join(filter(None, cells))
            for start, end in _pieces(text, 0, len(text)):
                self._block += 1
                if piece := text[start:end].strip():
                    rows.append(Sentence(line.start, line.end, piece, context, self._block))
        self._block += 1
        return rows, stop

    @staticmethod
    def _begins_with_names(lines: list[_Line]) -> bool:
        """Whether rows begin with the names of columns: without a digit; of two columns all numbers are beneath one."""
        names, *rows = [_cells(line.text, "") for line in lines]
        if not rows or any(map(str.isdigit, lines[0].text)):
            return False
        second = [row[1] for row in rows if len(row) > 1 and row[1]]
        return len(names) > 2 or (second != [] and all(any(map(str.isdigit, cell)) for cell in second))

    def _row(self, cells: list[str], names: list[str]) -> str:
        """A row as a sentence, with its columns' names as long as it is short and the document's share allows them."""
        said, chars = [], 0
        for n, cell in enumerate(cells):
            if not cell:
                continue
            name = names[n] if 0 < n < len(names) and chars < LONGEST else ""
            if name and len(name) <= self._names_left:
                self._names_left -= len(name)
                cell = f"{name}: {cell}"
            said.append(cell)
            chars += len(cell)
        return "; ".join(said)


def context_of(sentence: Sentence, joint: str) -> str:
    """The last two headings, each with a joint between it and what it is above."""
    return "".join(f"{title}{joint}" for title in sentence.headings[-2:])


def _shortened(lead: str) -> str:
    """A line above a list, cut where it is long; the colon that it may end with stays."""
    return lead if len(lead) <= _HEADING_CHARS else lead[: _HEADING_CHARS - 1] + lead[-1]


def _lines_of(document: str) -> Iterator[_Line]:
    start = 0
    for whole in document.splitlines(keepends=True):
        text = whole.strip()
        indent = len(whole) - len(whole.lstrip())
        yield _Line(start + indent, start + indent + len(text), text.strip(), len(whole[:indent].expandtabs(4)))
        start += len(whole)


def _code_in(lines: Sequence[_Line]) -> set[int]:
    """The lines between fences that are closed."""
    code, fence, begun = set[int](), "", 0
    for i, line in enumerate(lines):
        if (found := _FENCE.fullmatch(line.text)) is None:
            continue
        if not fence:
            fence, begun = found[1], i
        elif line.text.startswith(fence) and len(set(line.text)) == 1:
            code.update(range(begun + 1, i))
            fence = ""
    return code


def _is_title(text: str) -> bool:
    """Whether a line without markup may be a heading of what follows."""
    return _is_short(text) and (text[0].isupper() or text[0].isdigit())


def _is_short(text: str) -> bool:
    """Whether a line has few words, and ends as no sentence does."""
    if not text or len(text) > _SHORT_CHARS or len(text.split()) > _SHORT_WORDS or _is_row(text):
        return False
    return text[-1] not in _STOPS


def _is_row(text: str) -> bool:
    return (text[:1] == "|" and text.count("|") > 1) or "\t" in text or text.count(" | ") > 1


def _cells(row: str, mark: str) -> list[str]:
    cells = _split(row, mark) if mark else _BAR.split(row.strip("|")) if "|" in row else row.split("\t")
    return [plain(cell) for cell in cells]


def _split(row: str, mark: str) -> list[str]:
    """The cells of a row between marks outside of quotes; all of a long line is one."""
    if mark not in row or len(row) > 2 * LONGEST:
        return [row]
    return next(csv.reader([row], delimiter=mark))


def _begins_a_name(cell: str) -> bool:
    return not cell[:1].isspace() and any(map(str.isalpha, cell))


def _pieces(document: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence cut where it is too long, at white space if there is any."""
    while end - start > LONGEST:
        space = document.rfind(" ", start + LONGEST // 2, start + LONGEST)
        cut = space if space > 0 else start + LONGEST
        yield start, cut
        start = cut + (space > 0)
    yield start, end
