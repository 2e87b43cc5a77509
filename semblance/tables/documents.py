"""Documents in files -> their text: plain text and Markdown as they are, pages of HTML as Markdown, PDF's text.

Positions are those of this text: of the file itself for .txt and .md.
"""

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from semblance.errors import BatchError
from semblance.extras import needs
from semblance.tables.decoding import encoding_of, open_text
from semblance.tables.input_file import InputFile
from semblance.tables.rows import Say

_MOST_SHOWN = 10  # numbers of pages


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
