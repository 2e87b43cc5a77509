"""Documents in files -> their text: plain text and Markdown as they are, pages of HTML as Markdown, PDF's text.

Positions are those of this text: of the file itself for .txt and .md.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
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
_MOST_HEADS = 50  # rows of a table's head: the converter counts them for each
_MOST_DEPTH = 300  # parts within each other: the converter, which calls itself, reads a few more
_LONG_SPACE = re.compile(r"\s{200,}+")  # which it would read again from each of its characters
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# What is raised behind ten or a length is its power; other small numbers are marks of footnotes, as those of links are.
_POWER = re.compile(r"[+\-\u2212]?\d{1,2}")
_HAS_POWER = re.compile(r"(?:(?<![\d.,])10|(?<![^\W\d_])(?:[cdkm]?m|ft|yd|s))$")
_FOOTNOTE = re.compile(r"[\[(]?\d{1,3}(?:, ?\d{1,3})*[\])]?|[*\u2020\u2021]+")
_OF_A_MARK = 3  # parts of a link that is one: the number, and white space around it
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
    for part in soup(["math", "svg"]):
        _become(part, part.get_text())
    for cell in soup(colspan=True):
        cell["colspan"] = cell["colspan"] if _SPANS.fullmatch(str(cell["colspan"])) else "1"
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
    options: dict[str, Any] = {"heading_style": "ATX", "bullets": "-", "strip": ["a", "img"]}
    converter = MarkdownConverter(**options, escape_asterisks=False, escape_underscores=False)
    return str(converter.convert_soup(soup))


def _become(part: Any, text: str) -> None:
    """Have a text stand in place of a part of a page."""
    part.string, part.name, part.attrs = text, "span", {}


def _is_said_twice(part: Any) -> bool:
    """Whether it shows what stands beside it for those who hear the page; what is a block lies behind a dialog."""
    return part.get("aria-hidden") == "true" and _INLINE.fullmatch(part.name) is not None


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
    return text


_READERS: Mapping[str, Callable[[Path, str | None, Say], str]] = {
    ".txt": _plain,
    ".md": _plain,
    ".markdown": _plain,
    ".html": _page,
    ".htm": _page,
    ".pdf": _pdf,
}
