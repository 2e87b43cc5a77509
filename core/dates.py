"""Where a text says dates, times of day and versions."""

import re
from fractions import Fraction

from core import units
from core.numerals import Tokens
from core.units import DAY, Fact, is_grouped

Found = tuple[list[Fact], int] | None  # and the position of the token after them
ORDINAL_ENDS = ("st", "nd", "rd", "th")
_DAY_MONTH_YEAR = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})$")
# Before 1:10 as a time of day: else it is a ratio.
_AT = units.RANGES | frozenset(
    ("at", "from", "between", "and", "by", "before", "after", "since", "around", "about", "until")
)
_LASTING = frozenset(("takes", "take", "took", "taking", "lasts", "last", "lasted", "for", "of"))
_HOUR_MINUTE = re.compile(r"(\d{1,2})\.([0-5]\d)$")


def version(tokens: Tokens, i: int) -> Found:
    """Version 3.10, sections 2.1,2.2 and any 1.2.3."""
    named = tokens.word(i) in units.DOTTED
    word = tokens.word(i + named)
    if not word[:1].isdecimal() or "." not in word or not (named or word.count(".") > 1):
        return None
    if (not named and "," in word) or (not named and is_grouped(word)):
        return None
    return [Fact("version", name=each) for each in word.split(",")], i + named + 1


def clock(tokens: Tokens, i: int) -> Found:
    """5 pm, 7:30, 7.15 a.m., noon."""
    hour, minute, end = tokens.small(i, 24), 0, i + 1
    if tokens.word(i) in ("noon", "midnight"):
        return _minutes(720 * (tokens.word(i) == "noon"), end)
    pointed = _HOUR_MINUTE.match(tokens.word(i))
    if pointed and int(pointed[1]) <= 24:
        hour, minute = int(pointed[1]), int(pointed[2])
    if hour is None:
        return None
    colon = tokens.word(end) == ":" and tokens.glued(end) and tokens.glued(end + 1)
    if colon and len(tokens.word(end + 1)) == 2 and (given := tokens.small(end + 1, 59)) is not None:
        minute, end = given, end + 2
    half = tokens.word(end)
    if half in ("am", "pm"):
        end += 1
    elif half in ("a", "p") and tokens.are(end + 1, ".", "m") and tokens.glued(end + 2):
        end += 3 + (tokens.word(end + 3) == "." and tokens.glued(end + 3))
    elif not colon or end == i + 1:
        return None
    elif tokens.word(i) == "1" and tokens.word(i - 1) not in _AT and half not in units.RANGES:
        return None  # mixed 1:10
    elif half in ("h", "hr", "hrs", "hour", "hours") and tokens.word(i - 1) in _LASTING:
        return None  # takes 2:45 h
    else:
        half = ""
    hour = hour % 12 + 12 * (half[0] == "p") if half else hour
    return _minutes(hour * 60 + minute, end)


def _minutes(minutes: int, end: int) -> Found:
    value = Fraction(minutes % DAY)  # 24:00 is midnight
    return [Fact("time", value, value)], end


def hours(tokens: Tokens, i: int) -> Found:
    """A time of day, or from one to a later one."""
    first = clock(tokens, i)
    if first and tokens.word(first[1]) in (*units.RANGES, "and"):
        last = clock(tokens, first[1] + 1)
        if last and (low := first[0][0].low) is not None and low < (high := last[0][0].low or Fraction(DAY)):
            return [Fact("time", low, high)], last[1]
    joins = tokens.word(i + 1) in units.RANGES or (tokens.word(i + 1) == "and" and tokens.word(i - 1) == "between")
    hour = tokens.small(i, 12) if joins else None
    last = clock(tokens, i + 2) if hour else None
    if hour and last and tokens.small(i + 2, 12) and tokens.word(last[1] - 1) in ("am", "pm", "m", "."):
        high = last[0][0].low or Fraction(DAY)  # from 9 to 10 pm the first may be of either half of the day
        lows = [low for half in (0, DAY // 2) if (low := Fraction(hour % 12 * 60 + half)) < high]
        return [Fact("time", low, high) for low in reversed(lows)], last[1]
    return first


def date(tokens: Tokens, i: int) -> Found:
    """3 May 1921, May 3rd, 1921-05-03, 3.5.1921, 3/5/1921, May 1921, in May."""
    if match := _DAY_MONTH_YEAR.match(tokens.word(i)):
        return _dated([(int(match[3]), int(match[2]), int(match[1]))], i + 1)
    if tokens.word(i + 1) in ("-", "/") and tokens.word(i + 3) == tokens.word(i + 1) and tokens.glued(i + 4):
        parts = [tokens.word(place) for place in (i, i + 2, i + 4)]
        if all(part.isdecimal() and len(part) in (1, 2, 4) for part in parts):
            one, two, three = map(int, parts)
            if len(parts[0]) == 4:
                return _dated([(one, two, three)], i + 5)
            # Votes are 12-2-1.
            return _dated([(three, two, one), (three, one, two)], i + 5) if len(parts[2]) > 1 else None
    day, end = _day(tokens, i)
    if day:
        end += tokens.word(end) in ("of", "-")
        if month := _month(tokens, end, beside=True):
            year, after = _year(tokens, end + 1 + _is_pointed(tokens, end))
            after = after if year else end + 1
            if year or tokens.word(end) != "may" or tokens.written[end][0].isupper():  # "those under 18 may enter"
                return _dated([(year, month, day)], after)
    if not (month := _month(tokens, i, beside=False)):
        return None
    pointed = _is_pointed(tokens, i)
    day, end = _day(tokens, i + 1 + pointed)
    word = tokens.word(end)
    unit = word in units.EITHER or (word in units.UNITS and (len(word) > 1 or tokens.written[end] in units.LETTERS))
    if day and not unit and word != ":" and not tokens.are(end, "per", "cent"):
        year, end = _year(tokens, end)
        return _dated([(year, month, day)], end)
    year, end = _year(tokens, i + 1 + pointed)
    return _dated([(year, month, 0)], end if year else i + 1)


def _day(tokens: Tokens, i: int) -> tuple[int, int]:
    day = tokens.small(i, 31)
    return (day, i + 1 + (tokens.glued(i + 1) and tokens.word(i + 1) in ORDINAL_ENDS)) if day else (0, i)


def _month(tokens: Tokens, i: int, beside: bool) -> int:
    """The month of a token; `beside`: a day stands before it, so that "may" is one."""
    word = tokens.word(i)
    beside = beside or tokens.word(i + 1 + _is_pointed(tokens, i))[:1].isdecimal()
    if word not in ("may", "march") or beside:
        return units.MONTHS.get(word, 0) or (units.SHORT_MONTHS.get(word, 0) if beside else 0)
    before = tokens.written[i - 1] if i else ""
    return units.MONTHS[word] if tokens.written[i][0].isupper() and before[-1:].islower() else 0


def _is_pointed(tokens: Tokens, i: int) -> bool:
    """Whether a full stop stands behind a short month: Sept. 30."""
    short = tokens.word(i) in units.SHORT_MONTHS and tokens.word(i) not in units.MONTHS  # not "you may. 5 did"
    return short and tokens.word(i + 1) == "." and tokens.glued(i + 1)


def _year(tokens: Tokens, i: int) -> tuple[int, int]:
    start, i = i, i + (tokens.word(i) in (",", "-", "of"))
    word = tokens.word(i)
    if len(word) == 4 and word.isdecimal() and "1" <= word[0] <= "2":
        return int(word), i + 1
    return 0, start


def _dated(read: list[tuple[int, int, int]], end: int) -> Found:
    """A date of one or two readings (year, month, day); those that cannot be are left out."""
    found = []
    for year, month, day in read:
        full = year + (2000 if year < 70 else 1900) if 0 < year < 100 else year
        if 1 <= month <= 12 and day <= 31:
            found.append(Fraction(full * 10000 + month * 100 + day))
    return ([Fact("date", found[0], found[-1])], end) if found else None
