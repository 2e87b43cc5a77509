"""Raised text of pages: the cents of a price, a power, or the mark of a footnote, which is none of the text."""

import re

from core.text import raised

_CENTS, _PRICE, _CURRENCY = (
    re.compile(r"\d\d"),
    re.compile(r"[$\u20ac\u00a3] ?\d[\d,]*$"),
    re.compile(r"\s*[$\u20ac\u00a3]"),
)
_POWER = re.compile(r"[+\-\u2212]?\d{1,3}")
_HAS_POWER = re.compile(r"(?:(?<![\d.,])10|(?<![^\W\d_])(?:[cdkm]?m|mi|in|ft|yd|s))$")
_TWO = re.compile(r"(?<![\d.,])2$")  # 2\u00b3\u00b2; one digit behind it may be a footnote's
_FOOTNOTE = re.compile(r"[\[(]?\d{1,3}(?:, ?\d{1,3})*[\])]?|[*\u2020\u2021]+")


def lowered(text: str, before: str, after: str = "") -> str:
    """What is written for raised text: 10\u2076, m\u00b2 and $19.99 as these, nothing for the marks of footnotes.

    Args:
        text: without white space around it.
        before: what stands before it in the line, up to it.
        after: what stands behind it.
    """
    if after.lstrip()[:1] in ("/", "\u2044"):  # of a fraction
        return f" {text}"
    is_number = before[-1:].isdigit()
    if _CENTS.fullmatch(text) and (_PRICE.search(before) or (is_number and _CURRENCY.match(after))):
        return f".{text}"
    if _POWER.fullmatch(text) and text != "1" and (_HAS_POWER.search(before) or (text[1:] and _TWO.search(before))):
        return raised(text)
    if _FOOTNOTE.fullmatch(text):
        return ""
    return f" {text}" if is_number and text[:1].isdigit() else text
