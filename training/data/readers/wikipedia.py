"""Plain English Wikipedia: one paragraph a line, not tokenised; and a light sentence splitter for it."""

import re
from collections.abc import Iterable, Iterator

from training.data.files import read_lines

PARTS = tuple(f"corpus-wikipedia/enwiki-part{number:02d}.txt.gz" for number in range(11))

# A full stop after these does not end a sentence, whatever follows.
_ABBREVIATIONS = re.compile(
    r"mr|mrs|ms|dr|prof|st|gen|col|lt|sgt|capt|rev|hon|gov|sen|rep|pres|jr|sr|mt|ft|nos?|vol|fig|eds?|pp|vs|ca?|cf|e\.g|i\.e"
    r"|al|inc|ltd|co|corp|dept|est|approx|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_BOUNDARY = re.compile(r"[.!?][\"'\u201d\u2019)\]]*\s+(?=[\"'\u201c\u2018(\[]?[A-Z0-9])")
_LAST_WORD = re.compile(r"\S+\Z")
_INITIALS = re.compile(r"(?:[a-z]\.)*[a-z]")


def paragraphs(parts: Iterable[str] = PARTS) -> Iterator[str]:
    """Every paragraph of the parts, in order; 205,424 in all. Raises `CorpusError`."""
    for part in parts:
        for _, line in read_lines("Wikipedia", part):
            yield line


def split_sentences(paragraph: str) -> list[str]:
    """Sentences of a paragraph: cut after ``. ! ?`` before a capital or digit, not after abbreviations and initials.

    Good enough for unlabelled training text; it is no general sentence splitter.
    """
    sentences = []
    start = 0
    for boundary in _BOUNDARY.finditer(paragraph):
        if paragraph[boundary.start()] == "." and _abbreviated(paragraph[start : boundary.start()]):
            continue
        sentences.append(paragraph[start : boundary.end()].strip())
        start = boundary.end()
    rest = paragraph[start:].strip()
    return [*sentences, rest] if rest else sentences


def sentences(parts: Iterable[str] = PARTS) -> Iterator[str]:
    """Every sentence of the parts, in order."""
    for paragraph in paragraphs(parts):
        yield from split_sentences(paragraph)


def _abbreviated(before: str) -> bool:
    word = _LAST_WORD.search(before)
    if word is None:
        return False
    last = word[0].lower().lstrip("\"'([\u201c\u2018")
    return any(pattern.fullmatch(last) for pattern in (_ABBREVIATIONS, _INITIALS))
