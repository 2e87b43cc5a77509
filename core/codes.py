"""Where a text says codes and ordinals."""

import re
from collections.abc import Mapping
from fractions import Fraction

from core import units
from core.dates import ORDINAL_ENDS, Found
from core.numerals import GROUPED, Tokens
from core.units import MAX_DIGITS, Fact, Unit

MODEL = re.compile(r"(\d{3,30})([a-z]{1,3})$")
_CHUNK = re.compile(r"\w+(?:-\w+)*")
_TIMES = re.compile(r"(?<=\d)[x\u00d7](?=\d)", re.IGNORECASE)
_IN_PARTS = re.compile(r"\d+(?:-\d+){2,}")  # votes, formations, house numbers
_BETWEEN = re.compile("[-_ ()]")


def codes_in(text: str) -> dict[int, str]:
    """What may be a code of a text, by its first character."""
    return {match.start(): match[0] for pattern in (_CHUNK, GROUPED) for match in pattern.finditer(text)}


def is_grouped(written: str) -> bool:
    """Whether all of it is digits in groups, which are one code."""
    return GROUPED.fullmatch(written) is not None or _IN_PARTS.fullmatch(written) is not None


def code(tokens: Tokens, codes: Mapping[int, str], i: int) -> Found:
    """KB-2041, M6, 603XL, 020 7946 0000, 12-2-1, and numbers too long for one."""
    written = codes.get(tokens.starts[i], "") if i < len(tokens.starts) else ""
    if not any(map(str.isdecimal, written)):
        return None
    long = written.isdecimal() or is_grouped(written)
    if not long and not any(map(str.isalpha, written)):
        return None
    if (times := _TIMES.search(written)) and not written[: times.start()].isdecimal():
        written = written[: times.start()]
    end, stop = i + 1, tokens.starts[i] + len(written)
    while end < len(tokens.words) and tokens.starts[end] < stop:
        end += 1
    name = _BETWEEN.sub("", written).casefold()
    if model := MODEL.match(name):
        return [Unit("model").fact(Fraction(int(model[1])), name)], end
    return [Fact("code", name=name)], end


def ordinal(tokens: Tokens, i: int) -> Found:
    """The 21st, the twenty-first."""
    word = tokens.word(i)
    tied = tokens.word(i + 1) == "-" and tokens.glued(i + 1) and tokens.glued(i + 2)
    tens = units.SMALL.get(word, 0) * tied
    last = i + 2 * (tens >= 20)
    if number := units.ORDINALS.get(tokens.word(last)):
        return [Unit("ordinal").fact(Fraction(number + tens * (last > i)))], last + 1
    numbered = word.isdecimal() and len(word) < MAX_DIGITS and tokens.glued(i + 1)
    if numbered and tokens.word(i + 1) in ORDINAL_ENDS:
        return [Unit("ordinal").fact(Fraction(int(word)))], i + 2
    return None
