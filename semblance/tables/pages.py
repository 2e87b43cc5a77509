"""Pages of HTML -> Markdown, as claims are checked against: what a reader sees, in linear time.

beautifulsoup4 parses, and markdownify writes; but for what it writes of tables, which is `_table`'s.
"""

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from core.text import raised
from semblance.errors import BatchError
from semblance.extras import needs
from semblance.tables.raised import lowered

with needs("reading HTML", extra="documents"):
    import_module("lxml")  # the parser
    from bs4 import BeautifulSoup
    from bs4.element import PreformattedString
    from markdownify import MarkdownConverter

# Parts of a page that are not read: what is struck out, and what a browser does not show.
_NO_TEXT = (
    "script",
    "style",
    "head",
    "title",
    "nav",
    "dialog",
    "datalist",
    "audio",
    "video",
    "canvas",
    "iframe",
    "template",
    "noscript",
    "noframes",
    "annotation",  # of formulas and drawings
    "annotation-xml",
    "desc",
    "metadata",
    "del",
    "s",
    "strike",
)
# What stands within a line of text; every other part of a page is a block of its own, as elements of a site's own are.
_INLINE = re.compile(  # and Word's own elements
    "a|abbr|acronym|b|bdi|bdo|big|br|cite|code|data|del|dfn|em|font|i|img|ins|kbd|mark|nobr|picture|q|rb|rp|rt|ruby|s|"
    "samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr|.*:.*"
)
# Blocks that the converter writes as such.
_BLOCKS = re.compile(
    "article|blockquote|body|caption|d[dlt]|div|figcaption|h[1-6r]|html|li|[ou]l|p|pre|section|table|t(body|foot|head)|"
    "t[dhr]"
)
_HEADINGS = [f"h{level}" for level in range(1, 7)]
_GROUPS = ["thead", "tbody", "tfoot", "table"]  # of rows
_MOST_DEPTH = 200  # parts within each other: beyond 256 the parser takes more than linear time
# Raised text, by its own style or by that of its class in the page's head.
_RAISED = re.compile(r"(?:^|;)\s*vertical-align\s*:\s*super", re.IGNORECASE)
_MAY_BE_RAISED = ["a", "font", "small", "span"]
_CLASS_OF_RAISED = re.compile(r"\.([\w-]+)\s*+\{(?:[^{}]*;)?\s*vertical-align\s*:\s*super", re.IGNORECASE)
_LONG_SPACE = re.compile(r"\s{200,}+")  # which it would read again from each of its characters
_HIDDEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|content-visibility\s*:\s*hidden)", re.IGNORECASE)
_UNSEEN = re.compile(r"(?:^|;)\s*visibility\s*:\s*hidden", re.IGNORECASE)
_AS_BLOCK = re.compile(r"(?:^|;)\s*display\s*:\s*(?:block|flex|grid|table|list-item)\b", re.IGNORECASE)
# Whose marks may stand within an amount.
_MARKED = ["a", "img", "b", "strong", "i", "em", "code", "kbd", "samp"]
# Tables: a cell may span columns and rows; one of a layout has several paragraphs.
_CELLS = ["td", "th"]
_SPAN, _MOST_COLUMNS, _ALL_ROWS = re.compile(r"\s*\+?0*(\d{1,5})(?!\d)"), 1000, 65534
_MOST_SPANNED = 1_000_000  # characters of a page's cells that stand in further rows or columns
_MOST_PARAGRAPHS = 2
_MOST_HEADS = 3  # rows
_Spanned = dict[int, tuple[int, str]]  # column -> further rows, text
_ROLES = ("presentation", "none")
_OF_FORMULAS = [
    *("mfrac", "msup", "msub", "msubsup", "msqrt", "mroot"),
    *("mtd", "mtr", "mtable", "munder", "mover", "munderover", "mmultiscripts"),
]
_TERM, _WHOLE = re.compile(r"[A-Za-z0-9.,]*"), re.compile(r"[+\-\u2212]?[0-9]+")
_MOST_PARTS_OF_A_MARK = 3  # of a footnote's link: the number, and white space around it
_APART = "\n\n"
# What is text on a page, and would be a link, struck out, a tag, a comment or such a mark in Markdown.
_WOULD_BE_MARKS = re.compile(r"\](?=\()|~~|<(?=[a-zA-Z/])|(?<=<)!(?=--)|&(?=[#\w]{2,32};)|\\(?=[!-/:-@\[-`{-~])")


def markdown_of(page: str) -> str:
    """A page as Markdown.

    Raises:
        BatchError: cells of its tables span too much.
        RecursionError: its parts stand within each other too deeply.
    """
    soup = _Page(page, "lxml")  # which knows where ends may be left out
    classes = {name for sheet in soup("style") for name in _CLASS_OF_RAISED.findall(sheet.get_text())}
    for part in [
        *soup(_MAY_BE_RAISED, style=_RAISED),
        *(soup(_MAY_BE_RAISED, class_=list(classes)) if classes else ()),
    ]:
        part.name = "sup"
    # To take a part out of a page looks for it among its siblings: it becomes an empty one instead.
    for part in [*soup(_NO_TEXT), *soup(hidden=True), *soup(style=_HIDDEN), *soup(_is_said_twice)]:
        _become(part, "")
    for part in soup(style=_UNSEEN):  # whose place stays
        cells = [part] if part.name in _CELLS else part(_CELLS) if part.name in ("tr", *_GROUPS[:-1]) else []
        for each in cells:
            each.string = ""
        if not cells:
            _become(part, "")
    for part in soup(style=_AS_BLOCK):
        part.name = "div" if _INLINE.fullmatch(part.name) else part.name
    for quote in soup("blockquote"):
        quote.name = "div"  # Markdown's mark before each line may be a sign of amounts
    for numbered in soup("ol"):
        numbered.name = "ul"  # the converter counts the items before each
    _write_formulas(soup)
    _unfold_layout(soup)
    for part in _other_blocks(soup(True)):
        part.name = "div"
    for part in soup("sup"):
        if part.parent is not None:  # else it stood within another
            _become(part, _lowered(part))
    for text in soup.find_all(string=_LONG_SPACE):
        if not isinstance(text, PreformattedString):  # such as a comment
            text.replace_with(_LONG_SPACE.sub("\n", text))
    options: dict[str, Any] = {"heading_style": "ATX", "bullets": "-", "strip": _MARKED}
    return str(_Converter(**options, escape_asterisks=False, escape_underscores=False).convert_soup(soup))


class _Page(BeautifulSoup):
    def pushTag(self, tag: Any) -> None:  # of the library
        """Go into a part of a page; to read many within each other takes the library more than linear time."""
        super().pushTag(tag)
        if len(self.tagStack) > _MOST_DEPTH:
            raise RecursionError


class _Converter(MarkdownConverter):
    """The library's, but for tables: it knows nothing of spanned rows, nor of what stands before the first row."""

    def __init__(self, **options: Any) -> None:
        """Prepare for one page."""
        super().__init__(**options)
        self._texts: dict[int, str] = {}  # of cells, by id
        self._left = _MOST_SPANNED

    def escape(self, text: str, parent_tags: object) -> str:  # of the library
        """The text, with a backslash before what would be a mark."""
        return _WOULD_BE_MARKS.sub(r"\\\g<0>", text)

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:  # of the library
        """Keep a cell's text until its table is written; a bar would begin another cell."""
        text = " ".join(text.replace("|", "\u00a6").split())
        if not {"tr", "table"} <= parent_tags:
            return f" {text} "
        self._texts[id(el)] = text
        return ""

    convert_th = convert_td

    def convert_hN(self, n: int, el: Any, text: str, parent_tags: Any) -> str:  # of the library
        """A heading, within a cell or a link a part of its text."""
        return f" {text} " if "_inline" in parent_tags else str(super().convert_hN(n, el, text, parent_tags))  # type: ignore[misc]

    def convert_div(self, el: Any, text: str, parent_tags: Any) -> str:  # of the library
        """A block; what stands before an empty one is apart from what stands behind it."""
        if not text.strip():
            return " " if "_inline" in parent_tags else _APART
        return str(super().convert_div(el, text, parent_tags))  # type: ignore[misc]

    convert_article = convert_section = convert_div

    def convert_list(self, el: Any, text: str, parent_tags: Any) -> str:  # of the library
        """A list, apart from what follows it within an item of another."""
        text = str(super().convert_list(el, text, parent_tags))  # type: ignore[misc]
        return text + (_APART if "li" in parent_tags and _goes_on(el) else "")

    convert_ul = convert_list

    def convert_tr(self, el: Any, text: str, parent_tags: object) -> str:  # of the library
        """What stands between cells."""
        return f" {text} "

    def convert_table(self, el: Any, text: str, parent_tags: object) -> str:  # of the library
        """Its caption, and its rows."""
        return f"\n\n{text.strip()}\n\n{self._table(el)}\n\n"

    def _table(self, table: Any) -> str:
        group: Any = None
        titles: list[str] = []
        heads: list[list[str]] = []
        rows: list[list[str]] = []
        above: _Spanned = {}
        for row in table("tr"):
            if (within := row.find_parent(_GROUPS)) is not group:  # cells span rows of their group alone
                group, above = within, {}
            cells = row(_CELLS)
            if not heads and not rows and len(cells) == 1 and (_number(cells[0], "colspan") or 1) > 1:
                titles.append(self._texts.get(id(cells[0]), ""))
                continue
            may_be = not rows and len(heads) < _MOST_HEADS and (len(cells) > 1 or above or not heads)
            is_head = may_be and (group.name == "thead" or all(cell.name == "th" for cell in cells))
            texts, above = self._row(cells, above, is_head)
            if any(texts):
                (heads if is_head else rows).append(texts)
        return "\n".join([*(f"{title}\n" for title in titles), *_lines(heads, rows)])

    def _row(self, cells: Sequence[Any], above: _Spanned, is_head: bool) -> tuple[list[str], _Spanned]:
        """A row's texts, and what spans those below; `above` is that of the row before."""
        texts: list[str] = []
        below: _Spanned = {}

        def fill(until: int) -> None:
            while len(texts) in above or len(texts) < until:
                further, text = above.get(len(texts), (0, ""))
                if further > 1:
                    below[len(texts)] = further - 1, text
                self._spend(text)
                texts.append(text)

        for cell in cells:
            fill(0)
            text, columns, rows = self._texts.get(id(cell), ""), _number(cell, "colspan"), _number(cell, "rowspan")
            columns, rows = min(columns or 1, _MOST_COLUMNS), _ALL_ROWS if rows == 0 else rows or 1
            for at in range(columns):
                shown = text if at == 0 or is_head else ""
                if rows > 1:
                    below[len(texts)] = rows - 1, shown
                if at:
                    self._spend(shown)
                texts.append(shown)
        fill(max(above, default=-1) + 1)
        return texts, below

    def _spend(self, text: str) -> None:
        self._left -= len(text) + 1
        if self._left < 0:
            raise BatchError(f"cells that span rows or columns become more than {_MOST_SPANNED} characters")


def _lines(heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table's, under one head: Markdown knows no more."""
    width = max(map(len, [*heads, *rows]), default=0)
    columns = [[row[i] for row in heads if i < len(row)] for i in range(width)]
    names = [" ".join(dict.fromkeys(filter(None, column))) for column in columns]
    return [f"| {' | '.join(line)} |" for line in (names, ["---"] * width, *rows)] if width else []


def _goes_on(part: Any) -> bool:
    """Whether anything stands behind it within its parent."""
    return any(not isinstance(each, str) or each.strip() for each in islice(part.next_siblings, 2))


def _number(cell: Any, name: str) -> int | None:
    """How many columns or rows a cell spans, as browsers read it; None where it does not say."""
    said = _SPAN.match(str(cell.get(name, "")))
    return int(said[1]) if said else None


def _become(part: Any, text: str) -> None:
    """Have a text stand in place of a part of a page."""
    part.string, part.name, part.attrs = text, "span", {}


def _is_said_twice(part: Any) -> bool:
    """Whether it shows what stands beside it for those who hear the page; what is a block lies behind a dialog."""
    return part.get("aria-hidden") == "true" and _INLINE.fullmatch(part.name) is not None


def _write_formulas(soup: Any) -> None:
    """Have formulas and drawings be text: the numbers that they are made of are others, side by side."""
    for part in reversed(soup(_OF_FORMULAS)):  # what is within another first
        texts = [each.get_text().strip() for each in part if not isinstance(each, PreformattedString)]
        _become(part, _formula(part.name, [text for text in texts if text]))
    for part in soup("math"):
        _become(part, part.get_text())
    for part in soup("svg"):
        text = part.get_text(" ").strip()
        _become(part, text and f" {text} ")


def _formula(name: str, texts: list[str]) -> str:
    """What is written for a formula's element of these parts."""
    match name, texts:
        case "msqrt", _:
            return f"\u221a{_term(''.join(texts))}"
        case "mroot", [base, index]:
            return f"{raised(index)}\u221a{_term(base)}"
        case "mfrac", [above, below]:
            return f" {_term(above)}/{_term(below)}"
        case "msup", [base, power]:
            return _term(base) + _exponent(power)
        case "msub", [base, index]:
            return f"{base}_{index}"
        case "msubsup", [base, index, power]:
            return f"{_term(base)}_{index}{_exponent(power)}"
        case _:
            return " ".join(texts)


def _term(text: str) -> str:
    return text if _TERM.fullmatch(text) else f"({text})"


def _exponent(text: str) -> str:
    return raised(text) if _WHOLE.fullmatch(text) else f"^{_term(text)}"


def _unfold_layout(soup: Any) -> None:
    """Make blocks of the tables that lay out a page."""
    layout = {id(table) for table in soup("table") if _lays_out(table)}
    parts = [(part, part.find_parent("table")) for part in soup(["tr", "td", "th", *_GROUPS[:-1]])] if layout else []
    for part, table in [*parts, *((table, table) for table in soup("table"))]:
        if id(table) in layout:
            part.name = "div"


def _lays_out(table: Any) -> bool:
    """Whether a table has no data: it is around others, or has no heads and one column, headings or paragraphs."""
    if table.get("role") in _ROLES or table.find("table"):
        return True
    if table.find(["th", "thead", "caption"]):
        return False
    rows = [row("td") for row in table("tr")]
    cells = [cell for row in rows for cell in row]
    several = _MOST_PARAGRAPHS + 1
    return len(cells) <= len(rows) or any(
        cell.find(_HEADINGS) or len(cell("p", limit=several)) == several for cell in cells
    )


def _other_blocks(parts: Sequence[Any]) -> list[Any]:
    """Of all parts of a page the blocks that the converter does not know as such: as a link around blocks."""
    around: set[int] = set()  # ids of what has a block within
    for part in parts:
        for parent in () if _INLINE.fullmatch(part.name) else part.parents:
            if id(parent) in around:
                break
            around.add(id(parent))
    return [
        part
        for part in parts
        if (id(part) in around and _INLINE.fullmatch(part.name))
        # A form may stand around cells.
        or not (_INLINE.fullmatch(part.name) or _BLOCKS.fullmatch(part.name) or part.parent.name == "tr")
    ]


def _next(siblings: Iterable[Any]) -> Any:
    """The first of them that is shown."""
    return next((each for each in siblings if not isinstance(each, PreformattedString)), None)


def _lowered(part: Any) -> str:
    """What is written for raised text of a page; nothing for a link that is a mark."""
    text: str = part.get_text().strip()
    before, after = _next(part.previous_siblings), _next(part.next_siblings)
    link = part.parent if part.parent.name == "a" and len(part.parent) <= _MOST_PARTS_OF_A_MARK else None
    if part.a or (link is not None and link.get_text().strip() == text):
        return ""
    return lowered(text, before.get_text() if before else "", after if isinstance(after, str) else "")
