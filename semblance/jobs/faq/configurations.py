"""Every way to rank an FAQ that `POST /rank` can be asked for, as it would answer, from the scores of the models."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from core.ranking import (
    ConfidenceFit,
    Match,
    both_stages,
    of_stage,
    shared_words,
    texts_of,
)
from core.scoring import best_first
from semblance.jobs.faq.files import Faq, Questions
from semblance.jobs.faq.logistic import Flags, Floats
from semblance.jobs.faq.scores import PARTS_OF, Model, Scores


class Configuration(NamedTuple):
    """Who ranks, and by which text of an entry."""

    model: Model
    match: Match
    second: Model | None

    @property
    def published(self) -> ConfidenceFit | None:
        """The models' own fit; None: there is none."""
        first = self.model.id, self.model.fingerprint
        second = None if self.second is None else (self.second.id, self.second.fingerprint)
        return next((fit for fit in self.model.confidence if fit.is_for(first, second, fit.rerank_top)), None)


class Ranked(NamedTuple):
    """What a configuration answers to m questions, before any threshold.

    Attributes:
        configuration: whose.
        first: [m], places of the entries that come first.
        right: [m], whether the first is the right entry.
        features: [m, k], what the confidence is made of.
        seconds: of one question.
    """

    configuration: Configuration
    first: list[int]
    right: Flags
    features: Floats
    seconds: float


def configurations(models: Sequence[Model]) -> list[Configuration]:
    """Each model that reads texts alone, by itself and before each that costs more or reads pairs, by each match.

    Args:
        models: the cheapest first.
    """
    return [
        Configuration(model, match, second)
        for place, model in enumerate(models)
        if not model.reads_pairs
        for second in (None, *(each for n, each in enumerate(models) if n > place or each.reads_pairs))
        for match in PARTS_OF
    ]


def order_of(
    question: str, texts: Sequence[str], coarse: Sequence[float], fine: Sequence[float] | None, rerank_top: int
) -> tuple[list[int], list[float]]:
    """One ranking as `POST /rank` makes it: the places that were ordered last, best first, and the features.

    Args:
        question: what is asked.
        texts: n, all that each candidate says.
        coarse: [n], raw scores of the first stage.
        fine: [n], those of the second, of which it reads `rerank_top`; None: there is none.
        rerank_top: how many.
    """
    order = best_first(list(coarse))
    of_second: tuple[float, ...] = ()
    if fine is not None:
        best = order[:rerank_top]
        raw = [fine[place] for place in best]
        again = best_first(both_stages([coarse[place] for place in best], raw))
        of_second = of_stage(raw, again[0])
        order = [best[n] for n in again]
    return order, [*of_stage(coarse, order[0]), shared_words(question, texts[order[0]]), *of_second]


def ranked(configuration: Configuration, scores: Scores, faq: Faq, questions: Questions) -> Ranked:
    """The answers of one configuration."""
    model, match, second = configuration
    coarse = scores.of(model.id, match).tolist()
    fine = None if second is None else scores.of(second.id, match).tolist()
    texts = [" ".join(texts_of(entry.question, entry.answer, match)) for entry in faq.entries]
    found = [
        order_of(question, texts, coarse[i], None if fine is None else fine[i], scores.rerank_top)
        for i, question in enumerate(questions.texts)
    ]
    seconds = scores.cost(model, match) + (0.0 if second is None else scores.cost(second, match))
    first = [order[0] for order, _ in found]
    right = np.array([place == wanted for place, wanted in zip(first, questions.right, strict=True)])
    features = np.array([each for _, each in found])
    return Ranked(configuration, first, right, features, seconds)
