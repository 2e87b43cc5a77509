"""Documents in files -> their text: plain text and Markdown as they are, pages of HTML as Markdown, PDF's text.

Positions are those of this text: of the file itself for .txt and .md.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from core.units import LARGE, SMALL
from semblance.errors import BatchError
from semblance.extras import needs
from semblance.tables.decoding import encoding_of, open_text
from semblance.tables.input_file import InputFile
from semblance.tables.raised import lowered
from semblance.tables.rows import Say

_MOST_SHOWN = 10  # numbers of pages
# Of PDF: what raised text is, and how much smaller it is and higher it stands at least, of what is before it.
_MARK = re.compile(r"[\d,+\-\u2212*\u2020\u2021]+\s*")
_SMALLER, _HIGHER, _LONGEST_MARK = 0.9, 0.1, 20
_SHOW = (b"Tj", b"TJ", b"'", b'"')  # operators that show text
# A word that a line's end breaks; one with other hyphens keeps the usual one: state-of-the-art. So does a number.
_BROKEN = re.compile(
    r"(?<=[^\W\d_])[\u2010\u00ad] ?\n(?=[^\W\d_A-Z])"
    r"|(?<![^\s(\"'\u2018\u201c])([^\W\d_]+)- ?\n(?=[^\W\d_A-Z]++(?![\w-]))"
)
_GOES_ON = re.compile(r"(?<=[^\W\d_]|[,\-\u2010\u00ad])\n\n\f(?=[^\W\d_A-Z])")  # a sentence, on the next page
_FEW = 8  # pieces that a number before it may be set in


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
    if not text.strip():
        raise BatchError(f"{path}: there is no text")
    return text


def _plain(path: Path, encoding: str | None, say: Say) -> str:
    with open_text(path, encoding_of(path, encoding, say)) as file:
        return file.read()


def _page(path: Path, encoding: str | None, say: Say) -> str:
    from semblance.tables.pages import markdown_of

    page = _plain(path, encoding, say)
    try:
        return markdown_of(page)
    except BatchError as error:
        raise BatchError(f"{path}: {error}") from None
    except RecursionError:
        raise BatchError(f"{path}: its parts stand within each other too deeply to be read") from None


def _pdf(path: Path, encoding: str | None, say: Say) -> str:
    with needs("reading PDF", extra="documents"):
        from pypdf import PdfReader
        from pypdf.errors import FileNotDecryptedError

        import_module("cryptography")  # of files that anybody may open, and not change
    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else it prints what it thinks of a broken file
    try:
        pages = [_text_of_page(page).replace("\f", "\n").strip() for page in PdfReader(path).pages]
    except FileNotDecryptedError:
        raise BatchError(f"{path}: is protected: save it without a password") from None
    except Exception as error:  # of files that are no whole PDF the library raises whatever a broken part leads to
        raise BatchError(f"{path}: no PDF that can be read: {' '.join(str(error).split())}") from error
    text = _BROKEN.sub(_whole, _GOES_ON.sub("\n", "\n\n\f".join(pages)).replace("\f", ""))
    if not text.strip():
        raise BatchError(f"{path}: its pages have no text, as those of a scanner: read it by OCR first")
    if empty := [number for number, page in enumerate(pages, 1) if not page]:
        few = ", ".join(map(str, empty[:_MOST_SHOWN])) + (" and others" if len(empty) > _MOST_SHOWN else "")
        say(f"{path}: nothing was read from {len(empty)} of {len(pages)} pages, as of a scanner's: {few}")
    return text


def _whole(broken: re.Match[str]) -> str:
    """The beginning of a word, to which what follows in the next line is put; twenty-five and three-day are no word."""
    begun = broken[1] or ""
    return f"{begun}-" if begun.lower() in SMALL or begun.lower() in LARGE else begun


def _text_of_page(page: Any) -> str:
    """The text of a page of PDF: digits that are smaller than what they stick to, and higher, are raised."""
    pieces: list[tuple[str, float, float]] = []  # text, height above the page's foot, size
    rises, rise = [0.0], 0.0  # as set, which `q` keeps; of what was shown last

    def look(operator: bytes, operands: Sequence[Any], to_page: object, to_text: object) -> None:
        nonlocal rise
        if operator == b"Ts" and operands and isinstance(operands[0], int | float):
            rises[-1] = operands[0]
        elif operator == b"q":
            rises.append(rises[-1])
        elif operator == b"Q" and len(rises) > 1:
            rises.pop()
        elif operator in _SHOW:
            rise = rises[-1]

    def add(text: str, to_page: Sequence[float], to_text: Sequence[float], font: object, size: float) -> None:
        if text:
            scale = to_text[3] * to_page[3]
            pieces.append((text, to_text[5] * to_page[3] + to_page[5] + rise * scale, size * abs(scale)))

    whole: str = page.extract_text(visitor_text=add, visitor_operand_before=look)
    if "".join(text for text, _, _ in pieces) != whole:
        return whole
    made, mark = [""], ""
    line, large = 0.0, 0.0  # of the last piece that was not raised
    for text, height, size in pieces:
        is_raised = 0 < size < _SMALLER * large and height > line + _HIGHER * large
        if is_raised and made[-1][-1:].strip() and len(mark) < _LONGEST_MARK and _MARK.fullmatch(mark + text):
            mark += text
            continue
        if mark:
            made.append(lowered(mark.rstrip(), "".join(made[-_FEW:]), text) + mark[len(mark.rstrip()) :])
            mark = ""
        if text.strip():
            line, large = height, size
        made.append(text)
    if mark:
        made.append(lowered(mark.rstrip(), "".join(made[-_FEW:])))
    return "".join(made)


_READERS: Mapping[str, Callable[[Path, str | None, Say], str]] = {
    ".txt": _plain,
    ".md": _plain,
    ".markdown": _plain,
    ".html": _page,
    ".htm": _page,
    ".pdf": _pdf,
}
