"""Documents in files -> their text: plain text and Markdown as they are, pages of HTML as Markdown, PDF's text.

Positions are those of this text: of the file itself for .txt and .md.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from semblance.errors import BatchError
from semblance.extras import needs
from semblance.tables.decoding import encoding_of, open_text
from semblance.tables.input_file import InputFile
from semblance.tables.rows import Say

EXTRA = "documents"
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
_SPANS = re.compile(r"[1-4]?\d")  # cells that one may span; the converter writes a bar for each
_ROWS = re.compile(r"[1-9]\d{0,4}")
_MOST_SPANNED = 1_000_000  # characters of cells that stand in further rows
_LAID_OUT = ["table", *(f"h{level}" for level in range(1, 7))]
_MARKED = ["a", "img", "b", "strong", "i", "em", "code", "kbd", "samp"]  # whose marks may stand within an amount
_ROLES = ("presentation", "none")
_MOST_PARAGRAPHS = 2  # in a cell of data
_MOST_HEADS = 50  # rows of a table's head: the converter counts them for each
_MOST_DEPTH = 200  # parts within each other: beyond 256 the parser takes more than linear time
_LONG_SPACE = re.compile(r"\s{200,}+")  # which it would read again from each of its characters
_HIDDEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_BAR = re.compile(r"\|")  # which begins another cell
# What is raised behind a price is its cents, behind ten or a length its power; other small numbers are marks of
# footnotes, as those of links are.
_CENTS, _HAS_CENTS = re.compile(r"\d\d"), re.compile(r"[$\u20ac\u00a3] ?\d+$")
_POWER = re.compile(r"[+\-\u2212]?\d{1,3}")
_HAS_POWER = re.compile(r"(?:(?<![\d.,])10|(?<![^\W\d_])(?:[cdkm]?m|mi|in|ft|yd|s))$")
_FOOTNOTE = re.compile(r"[\[(]?\d{1,3}(?:, ?\d{1,3})*[\])]?|[*\u2020\u2021]+")
_MOST_SHOWN = 10  # numbers of pages
_OF_A_MARK = 3  # parts of a link that is one: the number, and white space around it
_OF_A_FORMULA = 2  # parts of a fraction, or of a power
_RAISED = str.maketrans(
    "0123456789+-\u2212", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207b"
)


def text_of_file(path: Path, encoding: str | None = None, say: Say = lambda _: None) -> str:
    """The text of a document; its suffix selects the reader.

    Args:
        path: .txt, .md, .html or .pdf.
        encoding: of text and HTML that is no UTF-8; None: none is.
        say: is told how the file is read, where that is not as wanted.

    Raises:
        BatchError: it cannot be read or decoded, is a pipe or a device, has no text, or its suffix is unknown.
        MissingExtra: HTML or PDF, and the packages that read it are not installed.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise BatchError(f"{path}: a document is .txt, .md, .html or .pdf")
    try:
        InputFile(path)  # raises where it never ends
        text = reader(path, encoding, say)
    except OSError as error:
        raise BatchError(f"{path}: {error.strerror or error}") from error
    except RecursionError:
        raise BatchError(f"{path}: its parts stand within each other too deeply to be read") from None
    if not text.strip():
        raise BatchError(f"{path}: there is no text")
    return text


def _plain(path: Path, encoding: str | None, say: Say) -> str:
    with open_text(path, encoding_of(path, encoding, say)) as file:
        return file.read()


def _page(path: Path, encoding: str | None, say: Say) -> str:
    with needs("reading HTML", extra=EXTRA):
        from bs4 import BeautifulSoup
        from bs4.element import PreformattedString
        from markdownify import MarkdownConverter

        import_module("lxml")

    class Page(BeautifulSoup):
        def pushTag(self, tag: Any) -> None:  # of the library
            """Go into a part of a page; to read many within each other takes the library more than linear time."""
            super().pushTag(tag)
            if len(self.tagStack) > _MOST_DEPTH:
                raise RecursionError

    soup = Page(_plain(path, encoding, say), "lxml")  # which knows where ends may be left out
    # To take a part out of a page looks for it among its siblings: it becomes an empty one instead.
    for part in [*soup(_NO_TEXT), *soup(hidden=True), *soup(style=_HIDDEN), *soup(_is_said_twice)]:
        _become(part, "")
    for quote in soup("blockquote"):
        quote.name = "div"  # Markdown's mark before each line may be a sign of amounts
    for numbered in soup("ol"):
        numbered.name = "ul"  # the converter counts the items before each
    for part in soup(["mfrac", "msup"]):
        if len(both := part(True, recursive=False)) == _OF_A_FORMULA:
            if part.name == "mfrac":
                part.insert(0, " ")
                both[1].insert(0, "/")
            else:
                both[1].string = both[1].get_text().translate(_RAISED)
    for part in soup(["math", "svg"]):
        _become(part, part.get_text())
    _unfold_layout(soup)
    _put_captions_before(soup)
    for text in soup.find_all(string=_BAR):
        if text.find_parent(["td", "th"]):
            text.replace_with(_BAR.sub("\u00a6", text))
    for cell in soup(colspan=True):
        cell["colspan"] = cell["colspan"] if _SPANS.fullmatch(str(cell["colspan"])) else "1"
    _fill_spanned([group("tr", recursive=False) for group in soup(["table", "thead", "tbody", "tfoot"])], path)
    for head in soup("thead"):
        head.name = "thead" if len(head("tr")) <= _MOST_HEADS else "tbody"
    for table in soup("table"):
        bodies = table("tbody", recursive=False)
        for row in [row for body in bodies[1:] for row in body.contents]:  # for each the converter looks for a head
            bodies[0].append(row)
    for part in _other_blocks(soup(True)):
        part.name = "div"
    for part in soup("sup"):
        if part.parent is not None:  # else it stood within another
            _become(part, _lowered(part))
    for text in soup.find_all(string=_LONG_SPACE):
        if not isinstance(text, PreformattedString):  # such as a comment
            text.replace_with(_LONG_SPACE.sub("\n", text))
    options: dict[str, Any] = {"heading_style": "ATX", "bullets": "-", "strip": _MARKED}
    converter = MarkdownConverter(**options, escape_asterisks=False, escape_underscores=False)
    return str(converter.convert_soup(soup))


def _become(part: Any, text: str) -> None:
    """Have a text stand in place of a part of a page."""
    part.string, part.name, part.attrs = text, "span", {}


def _is_said_twice(part: Any) -> bool:
    """Whether it shows what stands beside it for those who hear the page; what is a block lies behind a dialog."""
    return part.get("aria-hidden") == "true" and _INLINE.fullmatch(part.name) is not None


def _unfold_layout(soup: Any) -> None:
    """Make blocks of the tables that lay out a page: around tables, headings, or cells of several paragraphs."""
    parts = [(part, part.find_parent("table")) for part in soup(["tr", "td", "th", "thead", "tbody", "tfoot"])]
    cells = [(part, table) for part, table in parts if part.name in ("td", "th")]
    layout = {id(table) for cell, table in cells if len(cell("p", limit=_MOST_PARAGRAPHS + 1)) > _MOST_PARAGRAPHS}
    layout |= {id(table) for table in soup("table") if table.get("role") in _ROLES or table.find(_LAID_OUT)}
    for part, table in [*parts, *((table, table) for table in soup("table"))]:
        if id(table) in layout:
            part.name = "div"


def _put_captions_before(soup: Any) -> None:
    """Have rows alone in tables: behind a caption or a group of columns the converter takes none for the first."""
    for around in soup("table"):
        table, captions = soup.new_tag("table"), []
        for part in [*around.contents]:
            if part.name == "caption":
                part.name = "p"
                captions.append(part.extract())
            elif part.name in ("colgroup", "col"):
                part.extract()
            else:
                table.append(part)
        around.name = "div"
        around.extend([*captions, table])


def _fill_spanned(groups: Iterable[Sequence[Any]], path: Path) -> None:
    """Have what spans several rows of a table stand in each of them, of which the converter knows nothing."""
    left = _MOST_SPANNED
    for rows in groups:
        above: dict[int, tuple[int, str]] = {}  # column -> further rows that a cell spans, its text
        for i, row in enumerate(rows):
            column, below, cells = 0, {}, row(["td", "th"], recursive=False)
            for cell in [*cells, None]:
                filled = []
                while column in above or (cell is None and above):
                    further, text = above.pop(column, (0, ""))
                    if further > 1:
                        below[column] = further - 1, text
                    filled.append(text)
                    column += 1
                left -= sum(map(len, filled)) + len(filled)
                if left < 0:
                    raise BatchError(f"{path}: cells that span rows become more than {_MOST_SPANNED} characters")
                if cell is not None:
                    text, spans = cell.get_text(" ", strip=True), str(cell.get("rowspan", ""))
                    if further := min(int(spans) - 1 if _ROWS.fullmatch(spans) else 0, len(rows) - i - 1):
                        below |= {
                            column + at: (further, "" if at else text) for at in range(int(cell.get("colspan", 1)))
                        }
                    column += int(cell.get("colspan", 1))
                    cell.insert(0, "".join(f"{each} | " for each in filled))
                elif cells:
                    cells[-1].append("".join(f" | {each}" for each in filled))
            above = below


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


def _lowered(part: Any) -> str:
    """What is written for raised text of a page: 10\u2076 and m\u00b2 as these, nothing for the marks of footnotes."""
    text: str = part.get_text().strip()
    before, after = part.previous_sibling, part.next_sibling
    link = part.parent if part.parent.name == "a" and len(part.parent) <= _OF_A_MARK else None
    if part.a or (link is not None and link.get_text().strip() == text):
        return ""
    if isinstance(after, str) and after.lstrip()[:1] in ("/", "\u2044"):  # of a fraction
        return f" {text}"
    if _CENTS.fullmatch(text) and before and _HAS_CENTS.search(before.get_text()):
        return f".{text}"
    if _POWER.fullmatch(text) and text != "1" and before and _HAS_POWER.search(before.get_text()):
        return text.translate(_RAISED)
    return "" if _FOOTNOTE.fullmatch(text) else text


def _pdf(path: Path, encoding: str | None, say: Say) -> str:
    with needs("reading PDF", extra=EXTRA):
        from pypdf import PdfReader
        from pypdf.errors import FileNotDecryptedError

        import_module("cryptography")  # of files that anybody may open, and not change
    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else it prints what it thinks of a broken file
    try:
        pages = [page.extract_text() for page in PdfReader(path).pages]
    except FileNotDecryptedError:
        raise BatchError(f"{path}: is protected: save it without a password") from None
    except Exception as error:  # of files that are no whole PDF the library raises whatever a broken part leads to
        raise BatchError(f"{path}: no PDF that can be read: {' '.join(str(error).split())}") from error
    text = "\n\n".join(pages)
    if not text.strip():
        raise BatchError(f"{path}: its pages have no text, as those of a scanner: read it by OCR first")
    if empty := [number for number, page in enumerate(pages, 1) if not page.strip()]:
        few = ", ".join(map(str, empty[:_MOST_SHOWN])) + (" and others" if len(empty) > _MOST_SHOWN else "")
        say(f"{path}: nothing was read from {len(empty)} of {len(pages)} pages, as of a scanner's: {few}")
    return text


_READERS: Mapping[str, Callable[[Path, str | None, Say], str]] = {
    ".txt": _plain,
    ".md": _plain,
    ".markdown": _plain,
    ".html": _page,
    ".htm": _page,
    ".pdf": _pdf,
}
