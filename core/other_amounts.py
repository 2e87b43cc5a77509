"""Whether a claim says another amount of what a passage speaks of, in whatever order of words.

"The fee is 2,000 euros" never follows from "Fee: 1,000 euros per year". Amounts alone do not decide that: 220 euros for
two hours follow from 110 an hour, and 60 kg are too much where 50 are the limit. So the claim has to say nothing else:
each of its words and other amounts stands in the passage, and its amount is not computed from those.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby, islice, permutations
from typing import NamedTuple

from core.alignment import later_readings
from core.attributes import NEGATIONS, attributes, stem
from core.facts import agrees, compared_with, includes, words_between
from core.mentions import mentions
from core.numerals import plain_spelling
from core.units import LIMITS, SPANS, Fact, word_set

_PERIODS = {
    **dict.fromkeys(("annual", "annually", "yearly", "annum", "pa"), "year"),
    **{f"{span}ly": span for span in SPANS},
    "daily": "day",
    **{f"{span}s": span for span in SPANS},
}
# Words that do not say which amount is meant.
_SAY_LITTLE = frozenset(
    (
        *("a", "an", "the", "is", "are", "was", "were", "be", "been", "will", "it", "its", "this", "that", "there"),
        *("you", "we", "i", "they", "your", "our", "their", "my", "of", "for", "to", "in", "at", "on", "by", "and"),
        *("from", "per", "each", "every", "must", "have", "has", "had", "do", "does", "please"),
    )
)
# Words that an amount of money says, or a time from which something is.
_IMPLIED = frozenset(map(stem, ("pay", "paid", "cost", "price", "fee", "charge", "due", "payable", "start", "begin")))
_COMPUTED = frozenset(("half", "double", "twice", "triple", "third", "quarter", "total", "altogether", "together"))
_PERIODS_SAID = frozenset(map(stem, SPANS))
_NO_AMOUNTS = frozenset(("code", "model", "version", "date", "ordinal", "times"))
_WHEN = frozenset(("time", "weekday"))
_LIMITING = NEGATIONS | word_set(
    "by before after until till between within during every day days daily except but besides"
)
_LIMITING |= word_set("other also always latest earliest")
MAX_AMOUNTS = 8  # of a text: what says more is not compared
_IN_SECONDS = (1, 60, 3600, 86400, 604800)
_MAX_COUNTED = 2  # words behind a number that may be what it counts


class SaidAmount(NamedTuple):
    """An amount, date or code of a text.

    Attributes:
        facts: what it may mean.
        counted: stems of the words behind a plain number.
    """

    facts: tuple[Fact, ...]
    counted: tuple[str, ...]


class Said(NamedTuple):
    """A text in words and amounts.

    Attributes:
        amounts: in their order.
        words: stems of those that say which amount is meant.
        limiting: negations, and words with which a time or a day is not all that a text says of when.
    """

    amounts: list[SaidAmount]
    words: frozenset[str]
    limiting: frozenset[str]


def said_in(text: str) -> Said | None:
    """The words and amounts of a text; None where it has more than `MAX_AMOUNTS` of these."""
    plain = plain_spelling(text)
    found = list(islice(mentions(plain), MAX_AMOUNTS + 1))
    if len(found) > MAX_AMOUNTS:
        return None
    places = [(place, [each.fact for each in some]) for place, some in groupby(found, key=lambda x: (x.start, x.end))]
    amounts, words, position = [], [], 0
    for i, ((start, end), facts) in enumerate(places):
        words += words_between(plain, position, start)
        position = end
        written = words_between(plain, start, end)
        if written[:1] in (["a"], ["an"]):  # a week is often each week
            words += written
            continue
        if LIMITS.intersection(
            written[:1]
        ):  # two that are called so differ as other amounts do: "maximum weight is 32 kg"
            words += written[: next((k for k in (1, 2, 3) if written[k : k + 1] in (["of"], ["is"])), 1)]
            facts = [each._replace(low=each.low or each.high, high=each.high or each.low) for each in facts]
        after = places[i + 1][0][0] if i + 1 < len(places) else len(plain)
        facts += [later for each in facts for later in later_readings(each, plain[start:end])]
        behind = words_between(plain, end, after)[:_MAX_COUNTED] if facts[0].kind == "number" else []
        amounts.append(SaidAmount(tuple(facts), tuple(map(stem, behind))))
    words += words_between(plain, position, len(plain))
    days = {name: written for (kind, name), written in attributes(plain).items() if kind == "weekday"}
    amounts += [SaidAmount(tuple(Fact("weekday", name=name) for name in days), ())] * bool(days)
    left_out = _SAY_LITTLE.union(*(words_between(each, 0, len(each)) for each in days.values()))
    kept = frozenset(stem(_PERIODS.get(word, word)) for word in words if word not in left_out)
    return Said(amounts, kept, _LIMITING.intersection(words))


def says_another_amount(claim: Said, passage: Said) -> bool:
    """Whether a claim differs from a passage, of all that it says, in exact amounts alone, or in ranges beside these.

    The passage has some of the same unit or currency, or that count the same, and none of them is the claim's.
    """
    if not NEGATIONS.isdisjoint(claim.limiting) or len(_PERIODS_SAID & passage.words) > 1:
        return False
    if not _COMPUTED.isdisjoint(claim.words | passage.words) or not claim.words <= passage.words | _IMPLIED:
        return False
    differing: list[tuple[Fact, list[Fact]]] = []
    for amount in claim.amounts:
        beside = [(a, b) for a in amount.facts for other in passage.amounts for b in _of_its_kind(a, amount, other)]
        if any(_holds(a, b) for a, b in beside):
            continue
        kind = amount.facts[0].kind
        if not beside or kind in _NO_AMOUNTS or not all(a.exact or (b.exact and _is_range(a)) for a, b in beside):
            return False
        if kind in _WHEN and (claim.limiting or passage.limiting):
            return False
        differing.append((beside[0][0], [b for _, b in beside]))
    implied = any(a.kind == "money" or (a.kind == "time" and b.high is None) for a, others in differing for b in others)
    if not differing or not claim.words <= (passage.words | _IMPLIED if implied else passage.words):
        return False
    every = [fact for amount in (*claim.amounts, *passage.amounts) for fact in amount.facts]
    return not any(_is_computed(fact, others, every) for fact, others in differing if fact.kind not in _WHEN)


def _of_its_kind(fact: Fact, amount: SaidAmount, other: SaidAmount) -> Iterator[Fact]:
    """The facts of another amount that can differ from a fact."""
    if fact.kind == "number":
        first, second = amount.counted[:1], other.counted[:1]
        if not (
            _SAY_LITTLE.isdisjoint(first) and (set(first) & set(other.counted) or set(second) & set(amount.counted))
        ):
            return
    for each in other.facts:
        same = compared_with(each) == compared_with(fact)
        if same and (each.name == fact.name or fact.kind not in ("money", "number")):
            yield each


def _is_range(fact: Fact) -> bool:
    return fact.low is not None and fact.high is not None


def _holds(claim: Fact, passage: Fact) -> bool:
    return agrees(claim, passage) or (not (claim.exact and passage.exact) and includes(claim, passage))


def _counts(fact: Fact) -> Iterator[Fraction]:
    """What a fact may multiply or divide another one by: of three hours 3, of 5 % a twentieth, and what is left."""
    if fact.low and fact.exact:
        if fact.kind == "%":
            yield from (fact.low / 100, 1 - fact.low / 100, 1 + fact.low / 100)
        elif fact.kind == "s":
            yield from (fact.low / seconds for seconds in _IN_SECONDS)
        elif fact.kind == "month":
            yield from (fact.low, fact.low / 12)
        elif fact.kind not in ("date", "time", "money"):
            yield fact.low


def _is_computed(fact: Fact, others: Sequence[Fact], every: Sequence[Fact]) -> bool:
    """Whether an amount is a sum, a difference, a multiple or a part of those of a passage."""
    values = [each.low for each in others if each.low is not None and each.kind == fact.kind]
    counts = [count for each in every if each != fact and each not in others for count in _counts(each)]
    results = {sum(values)} | {x + sign * y for x, y in permutations(values, 2) for sign in (1, -1)}
    results |= {x * n for x in values for n in counts} | {x / n for x in values for n in counts if n}
    return fact.low in results
