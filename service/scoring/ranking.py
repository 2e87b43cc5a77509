"""Ranking: candidates ordered by their relevance or similarity to a query, in one stage or two.

In two stages a fast model orders all candidates, and the scores of a second one, with those of the first, order the
best of these again. Where a fit is given, the answer says how probable it is that the first one is right. What is asked
is a `RankRequest` (`service/schemas.py`), what is answered a `Ranking` (`core/answers.py`).
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from core.measures import to_digits
from core.ranking import ConfidenceFit, both_stages, of_stage, shared_words
from core.scoring import best_first
from core.tokenizer import Encoded
from service.engine.context import RequestContext
from service.errors import TooSlow
from service.schemas import SCALES, Answer, RankResponse
from service.scoring.scorer import Scorer

SUGGESTIONS = 3  # of what comes first, where nothing is answered
RERANK_TOP = 15  # candidates that a second stage orders, unless a request says how many: best on development questions
_PART = 1000  # candidates that are scored in a few milliseconds


class Candidates(NamedTuple):
    """n candidates, each of one text, or of two, of which the better score counts."""

    field: str  # of the request, that has them
    texts: Sequence[str]  # those of a candidate follow each other
    names: Sequence[str] = ("",)  # where within a candidate each of its texts stands, such as ".answer"

    @property
    def each(self) -> int:
        """How many texts a candidate has."""
        return len(self.names)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.texts) // self.each

    def field_of(self, i: int) -> str:
        """The field of the request of the i-th text."""
        return f"{self.field}.{i // self.each}{self.names[i % self.each]}"

    def text_of(self, place: int) -> str:
        """All that a candidate says."""
        return " ".join(self.texts[place * self.each : (place + 1) * self.each])


class RankOptions(NamedTuple):
    """What of a ranking is asked for."""

    top_k: int | None  # results; None: all
    rerank_top: int  # candidates that the second stage orders
    fit: ConfidenceFit | None  # for the models that rank; None: no confidence
    min_score: float | None  # of the first candidate, or there is no answer
    threshold: float | None  # likewise, of its confidence, where that is known
    declines: bool  # without an answer there are no results, but suggestions


class _Stage(NamedTuple):
    """Candidates best first by its raw scores or by both stages', equal ones in the order of the request."""

    places: list[int]  # in the request
    scores: list[float]
    raw: list[float]
    truncated: Answer

    async def results(self, first: int = 0, last: int | None = None) -> list[Answer]:
        """The results from the first to before the last place; yields to other requests between parts."""
        results: list[Answer] = []
        last = len(self.places) if last is None else min(last, len(self.places))
        for start in range(first, last, _PART):
            if start > first:
                await asyncio.sleep(0)
            part = slice(start, min(start + _PART, last))
            results += [
                {"index": i, "score": score, "raw_score": raw}
                for i, score, raw in zip(self.places[part], self.scores[part], self.raw[part], strict=True)
            ]
        return results


async def rank(
    context: RequestContext,
    first: Scorer,
    query: str,
    candidates: Candidates,
    second: Scorer | None,
    options: RankOptions,
) -> RankResponse:
    """Order the candidates by `first`, and the best of them again by its scores and those of `second`, if there is one.

    Candidates that `second` has not scored come after all that it has.

    Raises:
        EmptyText: the query, or a candidate, without a visible character.
        InferenceFailed: a graph raised, or gave a number that is not finite.
        TooSlow: it would not end in time.
    """
    coarse = await _order(context, first, query, candidates, range(candidates.size))
    fine = None
    if second is not None:
        best = coarse.places[: options.rerank_top]
        try:
            fine = _by_both_stages(coarse, await _order(context, second, query, candidates, best))
        except TooSlow as error:
            raise TooSlow(error.seconds, error.most).of("rerank_top", len(best)) from None
    confidence = _confidence(options.fit, query, candidates, coarse, fine)
    threshold = None if confidence is None else options.threshold
    answered = (options.min_score is None or (fine or coarse).scores[0] >= options.min_score) and (
        confidence is None or threshold is None or confidence >= threshold
    )
    declined = options.declines and not answered
    top_k = SUGGESTIONS if declined else options.top_k
    stages = coarse.results(last=top_k) if fine is None else _join_stages(coarse, fine, options.rerank_top, top_k)
    results = await stages
    answer: RankResponse = {
        "model": first.id,
        "scale": SCALES[first.ranking_task],
        "answered": answered,
        "confidence": confidence,
        "threshold": threshold,
        "results": [] if declined else results,
        "truncated": coarse.truncated,
    }
    if declined:
        answer["suggestions"] = results
    if second is not None and fine is not None:
        answer["rerank_model"] = second.id
        answer["rerank_scale"] = SCALES[second.ranking_task]
        answer["rerank_truncated"] = fine.truncated
    return answer


async def _join_stages(coarse: _Stage, fine: _Stage, rerank_top: int, top_k: int | None) -> list[Answer]:
    """The results of two stages."""
    results = await fine.results(last=top_k)
    rest = await coarse.results(rerank_top, top_k)
    for result in results:
        result["stage"] = 2
    for result in rest:
        result["stage"] = 1
    return results + rest


def _confidence(
    fit: ConfidenceFit | None, query: str, candidates: Candidates, coarse: _Stage, fine: _Stage | None
) -> float | None:
    """The probability that the first candidate is right; None: without a fit, or another candidate beside it."""
    last = fine or coarse
    if fit is None or len(last.places) < 2:
        return None
    first = last.places[0]
    features = [*of_stage(coarse.raw, coarse.places.index(first)), shared_words(query, candidates.text_of(first))]
    if fine is not None:
        features += of_stage(fine.raw, 0)
    return to_digits(fit.probability(features))


async def _order(
    context: RequestContext, scorer: Scorer, query: str, candidates: Candidates, places: Sequence[int]
) -> _Stage:
    """Order the candidates at these positions of the request; yields to other requests between parts."""
    each = candidates.each
    at = places if each == 1 else [place * each + n for place in places for n in range(each)]  # of their texts
    read: list[tuple[Encoded, Encoded]] = []
    scores: list[float] = []
    raw: list[float] = []
    (asked,) = await scorer.read(context, [query], lambda _: "query", role="query")
    for start in range(0, len(at), _PART):
        part = at[start : start + _PART]
        if start:
            await asyncio.sleep(0)
        with context.part(len(part) / (len(at) - start)):
            texts = [candidates.texts[i] for i in part]
            sentences = await scorer.read(context, texts, partial(_field, candidates, part), role="passage")
            queries, passages = scorer.fit([asked] * len(part), sentences)
            answer = await scorer.similarity(context, queries, passages, scorer.ranking_task)
        read += zip(queries, passages, strict=True)
        scores += answer.score
        raw += answer.raw
    if len(at) > _PART:
        await asyncio.sleep(0)
    # Equal texts have the score of the first: computed with others in a run, theirs may differ in the last digits.
    alike: dict[str, int] = {}
    same = [alike.setdefault(candidates.texts[i], n) for n, i in enumerate(at)]
    if len(alike) < len(at):
        scores, raw = [scores[n] for n in same], [raw[n] for n in same]
    if each > 1:  # of the texts of a candidate the better one, and of equal ones the first
        better = [max(range(n, n + each), key=raw.__getitem__) for n in range(0, len(at), each)]
        scores, raw = [scores[n] for n in better], [raw[n] for n in better]
    order = best_first(raw)
    cut = {i // each for i, (_, text) in zip(at, read, strict=True) if text.truncated}
    return _Stage(
        places=[places[n] for n in order],
        scores=[scores[n] for n in order],
        raw=[raw[n] for n in order],
        truncated={"query": any(asked.truncated for asked, _ in read), "candidates": sorted(cut)},
    )


def _by_both_stages(coarse: _Stage, fine: _Stage) -> _Stage:
    """The candidates that a second stage read, with its scores, in the order of both; of equal ones in the first's."""
    at = {place: n for n, place in enumerate(fine.places)}
    read = [at[place] for place in coarse.places[: len(at)]]
    joined = both_stages(coarse.raw[: len(at)], [fine.raw[n] for n in read])
    order = [read[n] for n in best_first(joined)]
    return fine._replace(
        places=[fine.places[n] for n in order],
        scores=[fine.scores[n] for n in order],
        raw=[fine.raw[n] for n in order],
    )


def _field(candidates: Candidates, places: Sequence[int], n: int) -> str:
    return candidates.field_of(places[n])
