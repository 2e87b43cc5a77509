"""What the passages that were found say of a claim, together.

For each passage a multinomial logistic regression turns the pair model's probabilities, how near the passage is and
whether their numbers agree into those of the three labels: a pair model by itself calls much contradicted that speaks
of something else. Of all passages the best one for each label counts.
"""

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

from contract.quantities import differences, has_quantity, quantities, within_ranges
from service.schemas import ClaimLabel, ClaimProbabilities
from service.scoring.evidence import Found, Passage

_FLOOR = 1e-3  # of a probability: surer a model is not
_MOST_CHARS = 2000  # of a claim, whose numbers are read
# For log entailment, log contradiction, log neutral, cosine, shared words, whether numbers differ; and 1.
_ENTAILED = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_CONTRADICTED = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class Reading(NamedTuple):
    """A passage, and the probabilities that a pair model gives for it and the claim."""

    found: Found
    passage: Passage
    entailment: float
    contradiction: float


class Statement(NamedTuple):
    """What a passage says of a claim.

    Attributes:
        reading: of the passage.
        entailed: probability.
        contradicted: probability.
        differences: numbers of the claim that are others in the passage, in words.
    """

    reading: Reading
    entailed: float
    contradicted: float
    differences: list[str]

    @property
    def label(self) -> ClaimLabel:
        """The most probable."""
        of: dict[ClaimLabel, float] = {"entailed": self.entailed, "contradicted": self.contradicted}
        best = max(of, key=of.__getitem__)
        return best if of[best] >= 1 - self.entailed - self.contradicted else "not_stated"

    def probability(self, label: ClaimLabel) -> float:
        """Of a label."""
        return {
            "entailed": self.entailed,
            "contradicted": self.contradicted,
            "not_stated": 1 - self.entailed - self.contradicted,
        }[label]


class Verdict(NamedTuple):
    """What all of the documents say of a claim.

    Attributes:
        label: the most probable.
        probabilities: of all labels.
        evidence: the passage that says so; None where none does.
        runner_up: the passage that speaks most for another label than that, of those that state something.
    """

    label: ClaimLabel
    probabilities: ClaimProbabilities
    evidence: Statement | None
    runner_up: Statement | None


def verdict(claim: str, readings: Sequence[Reading]) -> Verdict:
    """Join what passages say.

    Args:
        claim: its text.
        readings: at least one, best passage first.
    """
    statements = list(_statements(claim, readings))
    entails = max(statements, key=lambda each: each.entailed)
    contradicts = max(statements, key=lambda each: each.contradicted)
    e, c = entails.entailed, contradicts.contradicted
    odds = (e * (1 - c), c * (1 - e), (1 - e) * (1 - c))
    entailed, contradicted, not_stated = (each / sum(odds) for each in odds)
    probabilities: ClaimProbabilities = {
        "entailed": entailed,
        "contradicted": contradicted,
        "not_stated": not_stated,
    }
    if not_stated >= max(entailed, contradicted):
        return Verdict("not_stated", probabilities, None, entails if e >= c else contradicts)
    if entailed >= contradicted:
        return Verdict("entailed", probabilities, entails, contradicts)
    return Verdict("contradicted", probabilities, contradicts, entails)


def _statements(claim: str, readings: Sequence[Reading]) -> Sequence[Statement]:
    start = claim[:_MOST_CHARS]
    asked = quantities(start) if has_quantity(start) else {}
    found = []
    for each in readings:
        differ: list[str] = []
        if asked and has_quantity(each.passage.text):
            said = quantities(each.passage.text)
            differ = [str(one) for one in differences(within_ranges(asked, each.passage.text), said)]
        values = features(each, bool(differ))
        e, c = (exp(sum(w * x for w, x in zip(of, values, strict=True))) for of in (_ENTAILED, _CONTRADICTED))
        found.append(Statement(each, e / (1 + e + c), c / (1 + e + c), differ))
    return found


def features(reading: Reading, differs: bool) -> tuple[float, ...]:
    """What the regression reads; the order is that of its weights."""
    e, c = reading.entailment, reading.contradiction
    return (
        log(max(e, _FLOOR)),
        log(max(c, _FLOOR)),
        log(max(1 - e - c, _FLOOR)),
        reading.found.cosine,
        reading.found.words,
        float(differs),
        1.0,
    )
