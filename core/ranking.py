"""Texts that an entry of an FAQ is matched by, and the confidence that the first of a ranking is right.

The service answers `confidence` with these functions, and `semblance/jobs/faq/` fits it with the same ones.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.scoring import Logistic

Match = Literal["question", "answer", "both", "either"]
Feature = Literal["score", "lead", "standing", "words", "second_score", "second_lead", "second_standing"]
ONE_STAGE: tuple[Feature, ...] = ("score", "lead", "standing", "words")
TWO_STAGES: tuple[Feature, ...] = (*ONE_STAGE, "second_score", "second_lead", "second_standing")
MAX_ENTRIES = 1000  # of an FAQ in a request
SUGGESTIONS = 3  # the top candidates that are offered where none answers
Fingerprinted = tuple[str, str]  # id of a model, and its fingerprint
FIRST_STAGE = 0.5  # of the order of a second stage the part that is the first one's (benchmarks/second_stage.py)
_SPREAD = 1e-5  # below that scores are equal, but for rounding
_WORD = re.compile(r"\w+")
_PLAIN = Logistic(slope=1.0)


def texts_of(question: str, answer: str, match: Match) -> tuple[str, ...]:
    """What a query is compared with to find an entry: one text, or two of which the better one counts."""
    match match:
        case "question":
            return (question,)
        case "answer":
            return (answer,)
        case "both":
            return (f"{question} {answer}",)
        case "either":
            return (question, answer)


def digest_of(entries: Iterable[tuple[str, str]]) -> str:
    """The SHA-256 of the (question, answer) of all entries of an FAQ, in whichever order they stand."""
    return hashlib.sha256(json.dumps(sorted(entries)).encode()).hexdigest()


def shared_words(query: str, text: str) -> float:
    """The share of the query's different words that the text has too, 0..1; 0 of a query without a word."""
    words = set(_WORD.findall(query.lower()))
    return len(words.intersection(_WORD.findall(text.lower()))) / len(words) if words else 0.0


def of_stage(raw: Sequence[float] | npt.NDArray[np.float64], first: int) -> tuple[float, float, float]:
    """What one stage says of a candidate beside its others.

    Args:
        raw: the raw scores of n >= 2 candidates.
        first: the place of the candidate among them.

    Returns:
        score: its raw score.
        lead: how far that is above the best of the others; below 0 where another is better.
        standing: how far it is above the mean of all, in their standard deviations; 0 where all are equal.
    """
    standing = float(_standings(raw)[first])
    score = float(raw[first])
    best = max(float(value) for place, value in enumerate(raw) if place != first)
    return score, score - best, standing


def both_stages(
    coarse: Sequence[float], fine: Sequence[float], first_stage: float = FIRST_STAGE
) -> npt.NDArray[np.float64]:
    """What orders the n candidates that a second stage read: the raw scores of both stages, each in its standard
    deviations from its mean.

    A second stage alone loses on some kinds of questions what the first one found.

    Args:
        coarse: raw scores of the first stage, [n].
        fine: those of the second, [n].
        first_stage: the part of the first, 0..1.
    """
    joined = first_stage * _standings(coarse) + (1 - first_stage) * _standings(fine)
    return np.round(joined, 9)  # so that stages which contradict each other are equal, whatever the last digits


def _standings(raw: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How many standard deviations each of n scores is above their mean; 0 where all are equal."""
    scores = np.array(raw, dtype=np.float64)
    centred = scores - scores.mean()
    spread = math.sqrt(float(centred @ centred) / len(scores))
    return centred / spread if spread > _SPREAD else np.zeros(len(scores))


class ConfidenceFit(BaseModel):
    """Logistic regression: what a ranking looks like -> the probability that its first candidate is right."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str = Field(max_length=64, description="id of the model that ranks")
    fingerprint: str = Field(max_length=64, description="of that model; another version needs its own fit")
    rerank_model: str | None = Field(None, max_length=64, description="id of the second stage; null: there is none")
    rerank_fingerprint: str | None = Field(None, max_length=64)
    rerank_top: int | None = Field(None, ge=2, description="how many of the best the second stage orders")
    match: Match | None = Field(None, description="what of an FAQ's entries it was fitted with; null: any text")
    entries: str | None = Field(None, max_length=64, description="digest of the entries it was fitted on; null: any")
    intercept: float
    weights: dict[Feature, float] = Field(description="for each feature of the ranking")
    threshold: Annotated[float, Field(ge=0, le=1)] = Field(
        description="the confidence from which on answering is right more often than refusing"
    )
    rows: int = Field(ge=1, description="questions that it was fitted on")
    calibration_error: Annotated[float, Field(ge=0, le=1)] = Field(
        description="on questions that it was not fitted on: how far confidence and share of right answers are apart, "
        "mean over tenths of equal size"
    )
    fitted_by: str = Field(max_length=512, description="the command, with its seed")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        second = (self.rerank_model, self.rerank_fingerprint, self.rerank_top)
        if None in second and second != (None, None, None):
            raise ValueError("rerank_model, rerank_fingerprint and rerank_top belong together")
        if set(self.weights) != set(self.features):
            raise ValueError(f"expected a weight for each of {', '.join(self.features)}")
        return self

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features that it weighs."""
        return ONE_STAGE if self.rerank_model is None else TWO_STAGES

    def is_for(self, first: Fingerprinted, second: Fingerprinted | None, rerank_top: int | None) -> bool:
        """Whether it was fitted for rankings by these versions of models, the second of which orders so many."""
        fitted = (self.model, self.fingerprint), (self.rerank_model, self.rerank_fingerprint)
        return fitted == (first, second or (None, None)) and (second is None or self.rerank_top == rerank_top)

    def probability(self, features: Sequence[float]) -> float:
        """The probability for the features, in the order of `features`."""
        line = self.intercept + sum(
            self.weights[name] * value for name, value in zip(self.features, features, strict=True)
        )
        return float(_PLAIN.apply(np.array([line]))[0])
