"""Text files: which encoding they are in, and their lines; what is in another encoding is refused by its name.

Nothing is guessed: a file that is no UTF-8 is read when `--encoding` names another encoding. One of single bytes, such
as cp1252, is for those files of a command that are no UTF-8.
"""

import codecs
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from semblance.errors import BatchError
from semblance.tables.rows import Say

BLOCK = 1 << 20  # bytes read at once
SHOWN = 40  # characters of a bad line in a message
# How files that are no text begin.
_OTHER_FILES = (
    (b"PK\x03\x04", "a workbook or another zip file: save it as CSV in UTF-8"),
    (b"\xd0\xcf\x11\xe0", "an old workbook: save it as CSV in UTF-8"),
    (b"\x1f\x8b", "packed by gzip: unpack it first"),
    (b"PAR1", "a Parquet file: its name should end with .parquet"),
)
# The marks that a file may begin with, the longer ones first: UTF-32's begins as UTF-16's does.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class OtherEncoding(BatchError):
    """A text file is not UTF-8.

    Attributes:
        found: which file, and why; the text of the error advises an option too.
    """

    def __init__(self, path: Path, line: int, why: str, encoding: str) -> None:
        self.found = f"{path}: line {line}: {why}"
        super().__init__(f"{self.found}: give --encoding {encoding} if it is that, or save the file as UTF-8")


def encoding_of(path: Path, wanted: str | None, say: Say = lambda _: None) -> str:
    """The encoding to read a text file in: the wanted one, else UTF-8 with or without its mark.

    Args:
        path: the file, which is read whole once.
        wanted: name of an encoding; None: UTF-8.
        say: is told where the file is UTF-8, and so not read in the wanted one.

    Raises:
        BatchError: no encoding is called so, the file is in another one, which names the first bad line, or no text.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(4096)
    for beginning, what in _OTHER_FILES:
        if start.startswith(beginning):
            raise BatchError(f"{path}: {what}")
    marked = next((name for mark, name in _MARKS if start.startswith(mark)), None)
    if wanted is not None:
        try:
            encoding = codecs.lookup(wanted).name
            "".encode(encoding)  # LookupError where it is none of text, such as base64
            upper = bytes(range(128, 256)).decode(encoding, "replace")
        except (LookupError, UnicodeError):
            raise BatchError(f"--encoding {wanted}: no encoding is called so (such as utf-16, cp1252)") from None
        single = len(upper) == 128 and set(upper) != {"\ufffd"}  # of ASCII and UTF-8 none is a character
        if (single or marked == "utf-8-sig") and _first_bad_line(path, "ascii") and not _first_bad_line(path, "utf-8"):
            if not encoding.startswith("utf-8"):
                say(f"{path}: is UTF-8, and read as that, not as {wanted}")
            return marked or "utf-8"
        if marked is not None and encoding.startswith(marked.removesuffix("-sig")):
            encoding = marked  # which leaves the mark out, as utf-16-le does not
        try:
            bad = _first_bad_line(path, encoding)
        except UnicodeError as error:  # UTF-16 without its mark
            raise BatchError(f"{path}: {error}: name another --encoding") from None
        if bad is not None:
            raise BatchError(f"{path}: line {bad[0]}: byte {bad[2]:02X} is not {wanted}: name another --encoding")
        return encoding
    if marked is not None and marked != "utf-8-sig":
        raise OtherEncoding(path, 1, f"the file begins with the mark of {marked.upper()}", marked)
    if (half := _without_mark(start)) is not None:
        raise OtherEncoding(path, 1, f"the file begins as {half.upper()} without its mark", half)
    if (bad := _first_bad_line(path, "utf-8")) is not None:
        number, line, byte = bad
        place = line.index(byte) if byte in line else 0
        near = line[max(0, place - SHOWN // 2) :][:SHOWN].decode("cp1252", "replace").strip()
        raise OtherEncoding(path, number, f"byte {byte:02X} is not UTF-8; in cp1252 it would be {near!r}", "cp1252")
    return marked or "utf-8"


def open_text(path: Path, encoding: str) -> TextIO:
    """The file as text, its line ends (CR, LF or both) as they are."""
    return path.open(encoding=encoding, newline="")


def _without_mark(start: bytes) -> str | None:
    """UTF-16 of mostly Western text: zeros stand in every other place."""
    even, odd = start[::2].count(0), start[1::2].count(0)
    half = max(1, len(start) // 2)
    if odd > 0.4 * half and even < 0.1 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 * half and odd < 0.1 * half else None


def _first_bad_line(path: Path, encoding: str) -> tuple[int, bytes, int] | None:
    """Number, content and first bad byte of the first line that is not in the encoding; None where there is none."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    number = 1
    with path.open("rb") as file:
        while True:
            line = file.readline(BLOCK)
            try:
                decoder.decode(line, final=not line).encode()  # UTF-7 can write half of a character
            except UnicodeDecodeError as error:
                return number, line or error.object, error.object[error.start]
            if not line:
                return None
            number += line.endswith(b"\n")


def lines_of(file: TextIO) -> Iterator[tuple[str, int]]:
    """Each line with its end, and the byte up to which the file was read by then."""
    assert isinstance(file, TextIOWrapper)
    for line in file:
        yield line, file.buffer.tell()
