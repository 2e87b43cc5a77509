"""What the passages that were found say of a claim, together.

A log-linear model of one hidden variable, the passage that decides: each passage may entail the claim or contradict
it, or none does. The weights of both, for what a passage has (`features`), were fitted by likelihood on claims whose
label and passage are known: a pair model's contradictions count little where a passage speaks of something else.
"""

import re
from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

from contract.measures import to_digits
from contract.quantities import differences, has_quantity, quantities, within_ranges
from service.schemas import ClaimLabel, ClaimProbabilities
from service.scoring.evidence import Found, Passage

_FLOOR = 1e-3  # of a probability: surer a model is not
_MOST_CHARS = 1000  # of a claim, whose numbers are read
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|only|unless|except|closed|refused|free)\b|n't\b",
    re.IGNORECASE,
)
# Of log entailment, log contradiction, log neutral, the cosine, shared words, numbers that differ, all numbers there,
# a negation in one of the two, two sentences; and of 1.
_ENTAILED = (0.71, -0.34, -0.4, 2.1, 2.47, 0.38, 0.39, -0.27, -0.11, -1.77)
_CONTRADICTED = (-0.23, 0.35, -0.55, 3.42, 1.72, -0.07, 0.14, 0.39, -0.54, -3.63)
_OTHER: dict[ClaimLabel, ClaimLabel] = {"entailed": "contradicted", "contradicted": "entailed"}


class Reading(NamedTuple):
    """A passage, and the probabilities that a pair model gives for it and the claim."""

    found: Found
    passage: Passage
    entailment: float
    contradiction: float


class Statement(NamedTuple):
    """What a passage says of a claim, seen by itself.

    Attributes:
        passage: which.
        label: what it says of the claim; never `not_stated`.
        probability: of that, if the passage speaks of the claim at all.
        differences: numbers of the claim that are others in the passage, in words.
    """

    passage: Passage
    label: ClaimLabel
    probability: float
    differences: list[str]


class Verdict(NamedTuple):
    """What all of the documents say of a claim.

    Attributes:
        label: the most probable.
        probabilities: of all labels.
        evidence: the passage that says so; None where none does.
        runner_up: the passage that speaks most for another label that states something.
    """

    label: ClaimLabel
    probabilities: ClaimProbabilities
    evidence: Statement | None
    runner_up: Statement


def verdict(claim: str, readings: Sequence[Reading]) -> Verdict:
    """Join what passages say.

    Args:
        claim: its text.
        readings: at least one, best passage first.
    """
    seen = [features(claim, each) for each in readings]
    entailing = [exp(_weighted(values, _ENTAILED)) for values, _ in seen]
    contradicting = [exp(_weighted(values, _CONTRADICTED)) for values, _ in seen]
    masses = sum(entailing), sum(contradicting), 1.0
    entailed, contradicted, not_stated = (to_digits(mass / sum(masses)) for mass in masses)
    probabilities: ClaimProbabilities = {
        "entailed": entailed,
        "contradicted": contradicted,
        "not_stated": not_stated,
    }

    def best(label: ClaimLabel, besides: Statement | None = None) -> Statement:
        """The passage that speaks most for a label, besides one and those that share a sentence with it."""
        masses, others = (entailing, contradicting) if label == "entailed" else (contradicting, entailing)
        places = [i for i, each in enumerate(readings) if besides is None or _apart(each.passage, besides.passage)]
        i = max(places or range(len(masses)), key=masses.__getitem__)
        return Statement(readings[i].passage, label, to_digits(masses[i] / (masses[i] + others[i])), seen[i][1])

    likely: ClaimLabel = "entailed" if entailed >= contradicted else "contradicted"
    evidence = best(likely)
    if not_stated > max(entailed, contradicted):
        return Verdict("not_stated", probabilities, None, evidence)
    return Verdict(likely, probabilities, evidence, best(_OTHER[likely], evidence))


def features(claim: str, reading: Reading) -> tuple[tuple[float, ...], list[str]]:
    """What the weights are of, in their order; and the numbers that differ, in words."""
    e, c, text = reading.entailment, reading.contradiction, reading.passage.text
    start = claim[:_MOST_CHARS]
    asked = quantities(start) if has_quantity(start) else {}
    said = quantities(text) if asked else {}
    wanted = within_ranges(asked, text) if asked else {}
    differ = [str(each) for each in differences(wanted, said)]
    negated = (_NEGATION.search(start) is None) != (_NEGATION.search(text[reading.passage.context :]) is None)
    values = (
        log(max(e, _FLOOR)),
        log(max(c, _FLOOR)),
        log(max(1 - e - c, _FLOOR)),
        reading.found.cosine,
        reading.found.words,
        float(bool(differ)),
        float(bool(asked) and all(key in said for key in wanted)),
        float(negated),
        float(reading.passage.first != reading.passage.last),
        1.0,
    )
    return values, differ


def _apart(a: Passage, b: Passage) -> bool:
    return a.last < b.first or b.last < a.first


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))
