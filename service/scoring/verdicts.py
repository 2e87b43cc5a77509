"""What the passages that were found say of a claim, together.

A mixture over the passages: how probably each is the one that decides (`_relevance`), times what it says of the claim,
a multinomial logistic regression of the pair model's probabilities and how near it is. The model reads the claim with
its amounts spelt as in the passage (`core.alignment`); what facts alone decide is not left to it. `python -m
benchmarks.verdict_weights` fits the weights to `minilm-cross` by likelihood, on claims with known labels.
"""

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

from core.answers import ClaimLabel
from core.facts import Facts, amounts_of, differences, has_other_unit, is_sum
from core.scoring import round_significant
from service.scoring.evidence import Found, Passage
from service.scoring.scorer import AuxScores

_FLOOR = 1e-3  # of a probability: surer a model is not
MAX_CHARS = 1000  # of a claim, whose numbers and words are read
_SHARP = 13.67  # of the softmax over passages
_SAME = 2.0  # relevance of a passage that says the claim itself, above any other's
# What makes a passage the one that decides, besides its cosine: shared words, and what the pair model's graph gives for
# relevance and paraphrase.
_WORDS, _RELEVANCE, _PARAPHRASE = 0.21, 0.04, -0.03
# How much speaks for a statement, either way: of the log of entailment and contradiction together, of the cosine, of
# the graph's relevance, and of 1; and of a model whose graph gives none.
_STATED_WEIGHTS = (1.37, 0.12, 1.07, 1.6)
_STATED_WEIGHTS_WITHOUT_AUX = (0.83, 0.4, 0.0, 0.61)
# How much for entailed, and against contradicted: of the log odds, and of 1. To call a contradiction entailed is worse
# than the other way round: that of 1 is the largest by which one in seven of development is; as many labels are right.
_ENTAILED_WEIGHTS = (0.73, 0.2)
_ENTAILED_WEIGHTS_WITHOUT_AUX = (0.41, 0.45)
_OPPOSITE: dict[ClaimLabel, ClaimLabel] = {"entailed": "contradicted", "contradicted": "entailed"}


class Reading(NamedTuple):
    """A passage, and the probabilities that a pair model gives for it and the claim."""

    found: Found
    passage: Passage
    entailment: float
    contradiction: float
    aux_scores: AuxScores = None  # what the model's graph gives for relevance and paraphrase, if it does
    same_words: bool = False  # the passage says the claim itself: it entails it, whatever the model says
    other_fact: bool = False  # the passage says the claim but for an amount or the like: it never entails it


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
    probabilities: dict[ClaimLabel, float]
    evidence: Statement | None
    runner_up: Statement


def verdict(claim: str, readings: Sequence[Reading]) -> Verdict:
    """Join what passages say.

    Args:
        claim: its text.
        readings: at least one, best passage first.
    """
    nearest = max(map(_relevance, readings))
    shares = [exp(_SHARP * (_relevance(each) - nearest)) for each in readings]
    entailing, contradicting, differing = [], [], []
    asked = amounts_of(claim[:MAX_CHARS])
    for share, each in zip(shares, readings, strict=True):
        said = amounts_of(each.passage.said) if asked.spellings else asked
        stated_by, entailed_by = features_of(each, asked, said)
        weights = (
            (_STATED_WEIGHTS_WITHOUT_AUX, _ENTAILED_WEIGHTS_WITHOUT_AUX)
            if each.aux_scores is None
            else (_STATED_WEIGHTS, _ENTAILED_WEIGHTS)
        )
        stated, entailed = _weighted(stated_by, weights[0]), _weighted(entailed_by, weights[1])
        e, c = exp(stated + entailed), exp(stated - entailed)
        entailing.append(share * e / (1 + e + c) / sum(shares))
        contradicting.append(share * c / (1 + e + c) / sum(shares))
        differing.append([str(found) for found in differences(asked, said)])
    entailed, contradicted = round_significant(sum(entailing)), round_significant(sum(contradicting))
    not_stated = round_significant(max(0.0, 1 - sum(entailing) - sum(contradicting)))
    probabilities: dict[ClaimLabel, float] = {
        "entailed": entailed,
        "contradicted": contradicted,
        "not_stated": not_stated,
    }

    def best(label: ClaimLabel, besides: Statement | None = None) -> Statement:
        """The passage that speaks most for a label, besides one and those that share a sentence with it."""
        masses, others = (entailing, contradicting) if label == "entailed" else (contradicting, entailing)
        places = [i for i, each in enumerate(readings) if besides is None or _apart(each.passage, besides.passage)]
        i = max(places or range(len(masses)), key=masses.__getitem__)
        return Statement(
            readings[i].passage, label, round_significant(masses[i] / (masses[i] + others[i])), differing[i]
        )

    likely: ClaimLabel = "entailed" if entailed >= contradicted else "contradicted"
    evidence = best(likely)
    if not_stated > max(entailed, contradicted):
        return Verdict("not_stated", probabilities, None, evidence)
    return Verdict(likely, probabilities, evidence, best(_OPPOSITE[likely], evidence))


def _relevance(reading: Reading) -> float:
    """How much a passage seems to be the one that decides."""
    relevance, paraphrase = reading.aux_scores or (0.0, 0.0)
    found = reading.found
    own = found.cosine + _WORDS * found.words + _RELEVANCE * relevance + _PARAPHRASE * paraphrase
    return own + _SAME if reading.same_words else own


def features_of(reading: Reading, asked: Facts, said: Facts) -> tuple[Sequence[float], Sequence[float]]:
    """What `_STATED_WEIGHTS` and `_ENTAILED_WEIGHTS` weigh, by the amounts of the claim and of the passage.

    A text entails itself; $12 never follows from 12 EUR, nor what says another amount in the same words; a sum of all
    that a passage counts it neither states nor denies.
    """
    e, c = reading.entailment, reading.contradiction
    if reading.same_words:
        e, c = 1.0, 0.0
    elif is_sum(asked, said):
        e = c = 0.0
    elif reading.other_fact or has_other_unit(asked, said):
        e, c = 0.0, max(e, c)
    relevance = 0.0 if reading.aux_scores is None else reading.aux_scores[0]
    stated = (log(max(e + c, _FLOOR)), reading.found.cosine, relevance, 1.0)
    return stated, (log(max(e, _FLOOR)) - log(max(c, _FLOOR)), 1.0)


def _apart(a: Passage, b: Passage) -> bool:
    return a.last < b.first or b.last < a.first


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))
