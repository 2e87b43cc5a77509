"""Markdown's marks: those that are no words of a text, and those that begin an item of a list.

What a mark may be and an amount too, as "1.5" of "1.5 GB", stays in the text.
"""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from html.entities import html5

from core.text import raised, seen

_BULLET = "[-*+\u2022\u2023\u25e6\u2013\u2014\u00b7\u25aa\u25a0\u25cf\u25cb\u25b8\u25ba\u2192\u2713\u2714]"
# "1.", "a)", "(iv)", and of an outline "2.1", before no unit as GB; "J." and the like are initials.
_NUMBER = r"\d{1,3}|[a-zA-Z]|[ivx]{2,4}"
_MARK = re.compile(
    rf"(?:{_BULLET}|\((?:{_NUMBER})\)|(?:{_NUMBER})\)|(?![A-Z])(?:{_NUMBER})\.)\s+"
    r"|[1-9]\d?(?:\.[1-9]\d?)+\.?\s+(?=[^\W\d_a-z][^\W\d_A-Z])"
)
_OF_CLAIM = re.compile(rf"(?:{_BULLET}|\d{{1,3}}[.)])\s+")
_DIGITS = re.compile(r"\d+")
_NO_BREAK = re.compile(r"[^\n]")
# Where a link leads to, with its title; from each "](" on no further than to the next bracket or quote.
_TARGET = r"""\((?:[^()\s]++|\([^()\s]*+\))*+(?:\s++(?:"[^"\n]*+"|'[^'\n]*+'))?+\s*+\)"""
# What states nothing: the mark with which some programs begin files, what is struck out, open tasks, images.
_UNSAID = re.compile(
    rf"\A\ufeff|(?<!\\)~~[^~\n]{{1,500}}~~|^[^\S\n]*[-*+] \[ \] [^\n]*|(?<!\\)!\[[^\[\]\n]{{0,200}}\]{_TARGET}",
    re.MULTILINE,
)
# Of HTML, which Markdown may hold: tags state nothing, and raised digits are no others.
_TAG = re.compile(
    r"(?<!\\)</?(?:a|abbr|b|big|br|center|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|small|span|strong|"
    r"sub|sup|table|tbody|td|th|thead|tr|u|ul)(?:\s[^<>\n]{0,500}+)?/?>",
    re.IGNORECASE,
)
_SUP = re.compile(r"(?<!\\)<sup>([0-9]{1,3})</sup>", re.IGNORECASE)
_COMMENT = ("<!--", "-->")
_QUOTE = re.compile(r"(?:^[^\S\n]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_QUOTED = re.compile(r"^[^\S\n]*>[>\t ]*", re.MULTILINE)
_MORE_THAN = re.compile(r"[^\S\n]*>[>\t ]*[^\w\s>]?\d")
_LINK = re.compile(rf"(?<!\\)!?\[([^\[\]\n]{{0,200}})(?<!\\)\]{_TARGET}")
# Marks of emphasis, a character that is none of them, and what HTML writes for one.
_MARKS = re.compile(
    r"\\([!-/:-@\[-`{-~])|&(?:#\d{1,7};|#[xX][0-9a-fA-F]{1,6};|([a-zA-Z][a-zA-Z0-9]{1,31};))"
    r"|\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"
)
_LEADER = re.compile(r"(?<!\.)(?<!\. )(?: ?\.){5,}+ ?(?=[^\w\s]?\d)")  # "Soup ..... 5.50"


def plain(text: str) -> str:
    """A text without Markdown's marks within a line and the dots before a price, white space as single spaces."""
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    text = " ".join(seen(_MARKS.sub(_character, text)).split())
    return _LEADER.sub(": ", text) if "..." in text or ". ." in text else text


def _character(mark: re.Match[str]) -> str:
    """What it stands for; a name of a character that there is not is text."""
    if mark[2] is not None:  # of these `unescape` knows some by their beginnings: "&not" of "&nothing;"
        return html5.get(mark[2], mark[0])
    return mark[1] or (unescape(mark[0]) if mark[0][0] == "&" else "")


def claim_in(text: str) -> str:
    """A claim as a document has it: without a bullet or a number as "1.", links and emphasis, if more is there."""
    marked = _OF_CLAIM.match(text := text.strip())
    return plain(text[marked.end() :] if marked else text) or text


def said_in_place(document: str) -> str:
    """A document with spaces for what it does not state, for tags of HTML, and for the marks of what it quotes."""
    text = _UNSAID.sub(_blank, _without_comments(document))
    if "<" in text:
        text = _TAG.sub(_blank, _SUP.sub(lambda sup: raised(sup[1]).ljust(len(sup[0])), text))
    return _QUOTE.sub(_unquoted, text)


def _without_comments(text: str) -> str:
    """The text with spaces for HTML's comments; one that does not end is text."""
    parts, after = [], 0
    start, (opening, closing) = text.find(_COMMENT[0]), _COMMENT
    while start >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        parts += [text[after:start], _blanked(text[start : end + len(closing)])]
        after = end + len(closing)
        start = text.find(opening, after)
    return "".join((*parts, text[after:]))


def _unquoted(quote: re.Match[str]) -> str:
    """Quoted lines without their marks; where all go on with a number these may be signs: "> 65 years: free"."""
    lines = quote[0].split("\n")
    return quote[0] if all(_MORE_THAN.match(line) for line in lines if line) else _QUOTED.sub(_blank, quote[0])


def _blank(match: re.Match[str]) -> str:
    return _blanked(match[0])


def _blanked(text: str) -> str:
    """Spaces in its place; its lines stay lines."""
    return _NO_BREAK.sub(" ", text)


def marks_of(lines: Sequence[str]) -> Iterator[int]:
    """Characters of an item's mark at the begin of each line, with the white space behind it; 0: it has none.

    A number with points is a mark in an outline alone: behind the one before it, or as the first of a part before the
    second. A number within a paragraph is one in a list alone: "from platform 3." may go on in a line of its own.
    """
    found = [_MARK.match(line) for line in lines]
    numbers = [() if match is None else tuple(map(int, _DIGITS.findall(match[0]))) for match in found]
    later = iter([*filter(None, numbers), ()])
    following = next(later)
    known: tuple[int, ...] = ()  # the number of the last item that has one
    before, in_list = "", False
    for line, match, number in zip(lines, found, numbers, strict=True):
        if number:
            following = next(later)
        is_mark = match is not None
        if len(number) > 1:
            begun = len(known) > 1 and _is_next(known, number)
            is_mark = begun or (number[-1] == 1 and len(following) > 1 and _is_next(number, following))
        elif number and number != (1,) and (before[-1:].isalnum() or before[-1:] == ",") and before[0] != "#":
            is_mark = in_list or _is_next(known, number)
        known = number if is_mark and number else known
        before, in_list = line, is_mark and bool(number)
        yield match.end() if match is not None and is_mark else 0


def _is_next(number: Sequence[int], after: Sequence[int]) -> bool:
    """Whether a number of an outline is behind another: 2.2 or 2.1.1 behind 2.1, 3 or 3.1 behind 2.4."""
    same = next((i for i, (a, b) in enumerate(zip(number, after, strict=False)) if a != b), len(number))
    if same < len(number) and after[same:]:
        return after[same] == number[same] + 1 and set(after[same + 1 :]) <= {1}
    return set(after[same:]) == {1}
