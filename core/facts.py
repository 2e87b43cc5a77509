"""What a text says that another one must not contradict: amounts, dates, codes, attributes, negations.

n months are 30 n - 2 days (with a February) to 31 n. An amount of one currency never equals that of another.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from core.attributes import attributes, negated, stem
from core.mentions import mentions
from core.numerals import plain_spelling
from core.text import seen
from core.units import PERIODS, UNITLESS, Fact, values_of

# Of a text; what is beyond is not compared.
MAX_CHARS, MAX_MENTIONS, MAX_FACTS, MAX_INEXACT, MAX_AMOUNTS = 20_000, 2000, 64, 8, 32
MAX_SHOWN = 60  # characters of an amount or a word
_DAY = 86400  # seconds
_COMPARED_AS = {"month": "s"}  # months are compared with other durations, in seconds
_DIGITS = re.compile(r"\d[\d.,]*")
_NUMBER_AND_LETTERS = re.compile(r"(\d{1,30})[a-wyz]{1,3}$", re.ASCII)  # 3s, 603xl; 2x counts
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]*)?")
_FREE = re.compile(r"\b[^\W\d_]+-free\b", re.IGNORECASE)  # gluten-free affirms no gluten


def shown(written: str) -> str:
    """What a text writes, for people: of what is very long the beginning."""
    return written if len(written) <= MAX_SHOWN else f"{written[:MAX_SHOWN]}..."


class Difference(NamedTuple):
    """What two texts do not share, as it is written in each."""

    a: str
    b: str

    def __str__(self) -> str:
        """How a person would say it."""
        return f"{shown(self.a)} is not {shown(self.b)}"


class Facts(NamedTuple):
    """What a text says.

    Attributes:
        spellings: each fact, and how the text writes it.
        negated: words that come after a negation.
        affirmed: words that do not.
    """

    spellings: dict[Fact, str]
    negated: frozenset[str]
    affirmed: frozenset[str]


def facts_of(text: str) -> Facts:
    """The facts of a text."""
    text = seen(text[:MAX_CHARS])
    spellings: dict[Fact, str] = {}
    inexact, position, undated = 0, 0, 0
    words: list[str | None] = []  # None: an amount
    plain = plain_spelling(text)
    parts: list[str] = []  # without dates: of 3 May "may" is no duty
    for each in islice(mentions(text), MAX_MENTIONS):
        words += [*words_between(plain, position, each.start), None]
        position = each.end
        if each.fact.kind == "date":
            parts.append(plain[undated : each.start])
            undated = each.end
        inexact += each.fact.loose and each.fact not in spellings
        if len(spellings) < MAX_FACTS and (inexact <= MAX_INEXACT or not each.fact.loose):
            spellings.setdefault(each.fact, text[each.start : each.end])
    words += words_between(plain, position, len(plain))
    for (kind, name), written in attributes(" ".join((*parts, plain[undated:]))).items():
        spellings[Fact(kind, name=name)] = written
    negated_words = negated(words)
    affirmed = frozenset(word for word in words if word is not None) - negated_words
    return Facts(spellings, negated_words, affirmed)


def amounts_of(text: str) -> Facts:
    """The facts of a text without its attributes and words; quick where there is no number."""
    found = [(each.fact, text[each.start : each.end]) for each in islice(mentions(text), MAX_AMOUNTS)]
    return Facts(dict(found), frozenset(), frozenset())


def has_other_unit(claim: Facts, passage: Facts) -> bool:
    """Whether a passage has an amount of a claim with the same digits, but in another unit or currency."""
    claim, passage = _beside(claim, passage), _beside(passage, claim)
    digits = {found[0] for fact, written in passage.spellings.items() if (found := _digits(fact, written))}
    return any(
        (found := _digits(fact, written)) is not None and found[0] in digits and not _agrees_with_any(fact, passage)
        for fact, written in claim.spellings.items()
    )


def is_sum(claim: Facts, passage: Facts) -> bool:
    """Whether an amount of a claim is the sum of all of its kind in a passage, and not in the passage itself."""
    for fact in claim.spellings:
        values = [
            each.low for each in passage.spellings if each.kind == fact.kind and each.name == fact.name and each.exact
        ]
        if fact.exact and fact.low and len(values) > 1 and fact.low == sum(filter(None, values)):
            return not _agrees_with_any(fact, passage)
    return False


def _digits(fact: Fact, written: str) -> re.Match[str] | None:
    return None if _kind(fact) in UNITLESS or fact.low is fact.high is None else _DIGITS.search(written)


def _agrees_with_any(fact: Fact, facts: Facts) -> bool:
    return any(agrees(fact, each) for each in facts.spellings)


def difference(a: Facts, b: Facts) -> Difference | None:
    """The first difference found: facts of one kind, of which each text has one that the other lacks; None: none.

    A word that one text negates and the other affirms is a difference too.
    """
    return next(differences(a, b), None) or negation(a, b)


def negation(a: Facts, b: Facts) -> Difference | None:
    """A word that one text negates and the other affirms; None: there is none."""
    negated_in_a, negated_in_b = list(_negated_affirmed(a, b)), list(_negated_affirmed(b, a))
    # "No dogs" and "dogs are not allowed": each negates what the other affirms, or that it is allowed.
    if (negated_in_a and (negated_in_b or _forbids(b))) or (negated_in_b and _forbids(a)):
        return None
    found_differences = [Difference(f"not {own}", other) for own, other in negated_in_a]
    found_differences += [Difference(other, f"not {own}") for own, other in negated_in_b]
    return min(found_differences, key=sorted, default=None)


def _forbids(facts: Facts) -> bool:
    return not {"allow", "permit", "admit", "accept", "welcom"}.isdisjoint(map(stem, facts.negated))


# What is true where the first value of an attribute is: of all rooms, so of most and of some.
_FOLLOWS = frozenset((("all", "most"), ("all", "some"), ("most", "some"), ("must", "may")))


def rules_out(passage: Facts, claim: Facts) -> bool:
    """Whether a claim differs from a passage in a fact that does not follow: over 20 follows from over 30."""
    followed = {
        written
        for fact, written in claim.spellings.items()
        for each in passage.spellings
        if each.kind == fact.kind and (includes(fact, each) or (each.name, fact.name) in _FOLLOWS)
    }  # 85 cents may be of two currencies
    left = {fact: written for fact, written in claim.spellings.items() if written not in followed}
    return difference(claim._replace(spellings=left), passage) is not None


def differences(a: Facts, b: Facts) -> Iterator[Difference]:
    """For each kind of which both texts have some: one that each has and the other has not."""
    a, b = _beside(a, b), _beside(b, a)
    of_a, of_b = _by_kind(a), _by_kind(b)
    for kind in sorted(of_a.keys() & of_b.keys()):
        own, other = _unmatched(of_a[kind], of_b[kind]), _unmatched(of_b[kind], of_a[kind])
        if own and other:
            yield Difference(_first(a, own), _first(b, other))
    yield from _unit_differences(a, b)
    yield from _ranges_of_ends(a, b)
    yield from (Difference(other, own) for own, other in _ranges_of_ends(b, a))
    for one, two, swapped in ((a, b, False), (b, a, True)):
        for names in _more_specific_codes(one, two):
            yield Difference(*(reversed(names) if swapped else names))


def _beside(facts: Facts, other: Facts) -> Facts:
    """With 10 mg per day as 10 mg if the other text says no such rate, but an amount: who says more agrees."""
    kinds = {_kind(fact) for fact in other.spellings}
    found: dict[Fact, str] = {}
    for fact, written in facts.spellings.items():
        above, _, below = fact.kind.partition("/")
        period = next((PERIODS[word] for word in reversed(_WORD.findall(written.lower())) if word in PERIODS), None)
        if below and period and _COMPARED_AS.get(above, above) in kinds and fact.kind not in kinds:
            low, high = (value if value is None else value * period.factor for value in (fact.low, fact.high))
            fact = fact._replace(kind=above, low=low, high=high)
        found.setdefault(fact, written)
    return facts._replace(spellings=found)


def _unit_differences(a: Facts, b: Facts) -> Iterator[Difference]:
    """The same digits with units of another kind, of which only one text has an amount: 250 g and 250 ml."""
    own, other = ({_kind(fact) for fact in side.spellings} for side in (a, b))
    digits: dict[str, str] = {}
    for fact, written in b.spellings.items():
        if _kind(fact) not in own and (found := _digits(fact, written)):
            digits.setdefault(found[0], written)
    for fact, written in a.spellings.items():
        if _kind(fact) not in other and (found := _digits(fact, written)) and found[0] in digits:
            yield Difference(written, digits[found[0]])


def _ranges_of_ends(a: Facts, b: Facts) -> Iterator[Difference]:
    """Plain numbers of a from one to another, of which b names both: rooms 1-5 are not rooms 1 and 5."""
    if any(fact.kind == "number" and not fact.exact for fact in b.spellings):
        return
    for fact, written in a.spellings.items():
        if fact.kind == "number" and fact.low is not None and fact.high is not None and not fact.exact:
            ends = [b.spellings.get(Fact("number", end, end)) for end in (fact.low, fact.high)]
            if ends[0] and ends[1]:
                yield Difference(written, f"{ends[0]}, {ends[1]}")


def _more_specific_codes(a: Facts, b: Facts) -> Iterator[tuple[str, str]]:
    """Codes, versions and shares that say more in a: 603XL than 603, 3S than 3, version 17.1.2 than 17.1, 9% than 9."""
    shares = any(fact.kind == "%" for fact in b.spellings)
    models = any(fact.kind in ("model", "code") for fact in b.spellings)
    versions = any(fact.kind == "version" for fact in b.spellings)
    for fact, written in a.spellings.items():
        if (found := _NUMBER_AND_LETTERS.match(fact.name)) and fact.kind in ("model", "code") and not models:
            number = Fact("number", Fraction(found[1]), Fraction(found[1]))
            if number in b.spellings and number not in a.spellings:
                yield written, b.spellings[number]
        elif written.endswith(("%", "percent")) and not shares:
            number = fact._replace(kind="number")
            if number in b.spellings and number not in a.spellings:
                yield written, b.spellings[number]
        elif fact.kind == "version" and not versions and fact.name.count(".") > 1:
            short = ".".join(fact.name.split(".")[:2])
            for number in (Fact("number", value, value) for value in values_of(short)):
                if b.spellings.get(number) == short and number not in a.spellings:
                    yield written, short


def compared_with(fact: Fact) -> str:
    """The kind within which a fact is compared: only facts of one such kind can differ."""
    return "number" if fact.kind == "model" else _kind(fact)


def agrees(a: Fact, b: Fact) -> bool:
    """Whether two facts may both be true of one thing: equal, or one within the other's range or bound."""
    if a == b:
        return True
    if a.name != b.name or _kind(a) != _kind(b):
        return False
    if a.kind == "date":
        return any(_same_date(x, y) for x in (a.low, a.high) for y in (b.low, b.high) if x and y)
    if a.exact and b.exact:
        return _same(a.low, a.kind, b.low, b.kind)
    if not a.exact and not b.exact:
        same = _same(a.low, a.kind, b.low, b.kind) and _same(a.high, a.kind, b.high, b.kind)
        return same and a.strict == b.strict
    return includes(b, a) if a.exact else includes(a, b)


def includes(outer: Fact, inner: Fact) -> bool:
    """Whether what a fact says follows from another: 5 to 7 days, or at least 60 %, from 6 days, or from 62 %."""
    if outer.name != inner.name or _kind(outer) != _kind(inner) or outer.kind == "date":
        return False
    for bound, value, sign in ((outer.low, inner.low, 1), (outer.high, inner.high, -1)):
        if bound is None:
            continue
        if value is None:
            return False
        if _same(bound, outer.kind, value, inner.kind):
            if outer.strict and not inner.strict:
                return False
        elif (_span(value, inner.kind)[0] - _span(bound, outer.kind)[0]) * sign < 0:
            return False
    return True


def _same(a: Fraction | None, kind: str, b: Fraction | None, other: str) -> bool:
    if a is None or b is None or kind == other:
        return a == b
    (low_a, high_a), (low_b, high_b) = _span(a, kind), _span(b, other)
    return low_a <= high_b and low_b <= high_a


def _span(value: Fraction, kind: str) -> tuple[Fraction, Fraction]:
    return ((30 * value - 2) * _DAY, 31 * value * _DAY) if kind == "month" else (value, value)


def _same_date(a: Fraction, b: Fraction) -> bool:
    parts = zip(divmod(int(a), 10000), divmod(int(b), 10000), strict=True)
    (year, other_year), (rest, other_rest) = parts
    pairs = ((year, other_year), (rest // 100, other_rest // 100), (rest % 100, other_rest % 100))
    return all(x == y or not x or not y for x, y in pairs)


def _kind(fact: Fact) -> str:
    return _COMPARED_AS.get(fact.kind, fact.kind)


def _by_kind(facts: Facts) -> dict[str, list[Fact]]:
    found: dict[str, list[Fact]] = {}
    for fact in facts.spellings:
        found.setdefault(_kind(fact), []).append(fact)
    return found


def _unmatched(own: list[Fact], other: list[Fact]) -> list[Fact]:
    """Facts that agree with none of the others."""
    equal = set(other)
    loose = [fact for fact in other if fact.loose]
    left = [fact for fact in own if fact not in equal]
    return [fact for fact in left if not any(agrees(fact, each) for each in (other if fact.loose else loose))]


def _first(facts: Facts, some: list[Fact]) -> str:
    return min((facts.spellings[each] for each in some), key=lambda written: (len(written), written))


def _negated_affirmed(a: Facts, b: Facts) -> Iterator[tuple[str, str]]:
    """Words that a negates, and how b affirms each, in whatever form."""
    if not a.negated:
        return
    affirmed = {stem(word): word for word in sorted(b.affirmed)}
    # Who asks to unlock what is locked does not deny it.
    asked = {word for word in a.negated if f"un{word}" in a.affirmed and not word.endswith("ed")}
    also = {stem(word) for word in b.negated}
    for word in sorted(a.negated):
        other = affirmed.get(stem(word), "")
        if other and stem(word) not in also and not (word in asked and other.endswith("ed")):
            yield word, other


def words_between(text: str, start: int, end: int) -> list[str]:
    """The words of a part of a text, in lower case."""
    part = _FREE.sub("free", text[start:end])
    return [match[0] for match in _WORD.finditer(part.casefold())]
