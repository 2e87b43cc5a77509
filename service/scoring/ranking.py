"""Ranking: candidates ordered by their relevance or similarity to a query, in one stage or two.

In two stages a fast model orders all candidates, and a second one orders the best of these again.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from contract.scoring import best_first
from contract.tokenizer import Encoded
from service.errors import TooSlow
from service.observe.timings import TIMINGS
from service.schemas import SCALES, RankResponse, RankResult, RankTruncated
from service.scoring.scorer import Scorer

RERANK_TOP = 15  # candidates that a second stage orders, unless a request says how many: best on development questions
_PART = 1000  # candidates that are scored in a few milliseconds


class _Stage(NamedTuple):
    """Candidates best first, equal ones in the order of the request."""

    places: list[int]  # in the request
    scores: list[float]
    raw: list[float]
    truncated: RankTruncated
    query_language: str | None  # hint on the query
    languages: dict[int, str]  # hints on candidates, by their positions in the request

    async def results(self, first: int = 0, last: int | None = None) -> list[RankResult]:
        """The results from the first to before the last place; yields to other requests between parts."""
        results: list[RankResult] = []
        last = len(self.places) if last is None else min(last, len(self.places))
        for start in range(first, last, _PART):
            if start > first:
                await asyncio.sleep(0)
            part = slice(start, min(start + _PART, last))
            results += [
                {"index": i, "score": score, "raw_score": raw}
                for i, score, raw in zip(self.places[part], self.scores[part], self.raw[part], strict=True)
            ]
        if self.languages:
            for result in results:
                if (language := self.languages.get(result["index"])) is not None:
                    result["language"] = language
        return results


async def rank(
    first: Scorer,
    query: str,
    candidates: Sequence[str],
    *,
    second: Scorer | None = None,
    rerank_top: int = 0,
    top_k: int | None = None,
) -> RankResponse:
    """Order the candidates by `first`, and the best `rerank_top` of them again by `second`, if there is one.

    Candidates that `second` has not scored come after all that it has.

    Raises:
        EmptyText: the query, or a candidate, without a visible character.
        InferenceFailed: a graph raised, or gave a number that is not finite.
        TooSlow: it would not end in time.
    """
    scale = SCALES[first.manifest.ranking_task]
    coarse = await _order(first, query, candidates, range(len(candidates)))
    if second is None:
        results = await coarse.results(last=top_k)
        answer = RankResponse(model=first.id, scale=scale, results=results, truncated=coarse.truncated)
        if coarse.query_language is not None:
            answer["language"] = coarse.query_language
        return answer
    best = sorted(coarse.places[:rerank_top])  # so that of those equal to `second` the earlier comes first
    try:
        fine = await _order(second, query, candidates, best)
    except TooSlow as error:
        raise error.of("rerank_top", len(best)) from None
    results = await fine.results()
    rest = await coarse.results(rerank_top, top_k)
    for result in results:
        result["stage"] = 2
    for result in rest:
        result["stage"] = 1
    answer = {
        "model": first.id,
        "scale": scale,
        "results": (results + rest)[:top_k],
        "truncated": coarse.truncated,
        "rerank_model": second.id,
        "rerank_scale": SCALES[second.manifest.ranking_task],
        "rerank_truncated": fine.truncated,
    }
    if (language := coarse.query_language or fine.query_language) is not None:
        answer["language"] = language
    return answer


async def _order(scorer: Scorer, query: str, candidates: Sequence[str], places: Sequence[int]) -> _Stage:
    """Order the candidates at these positions of the request; yields to other requests between parts."""
    read: list[tuple[Encoded, Encoded]] = []
    scores: list[float] = []
    raw: list[float] = []
    (asked,) = await scorer.read([query], lambda _: "query", role="query")
    timings = TIMINGS.get()
    for start in range(0, len(places), _PART):
        part = places[start : start + _PART]
        if start:
            await asyncio.sleep(0)
        timings.share = len(part) / len(places)
        texts = [candidates[i] for i in part]
        sentences = await scorer.read(texts, partial(_field, part), len(part) / len(places), role="passage")
        queries, passages = scorer.fit([asked] * len(part), sentences)
        answer = await scorer.similarity(queries, passages, scorer.manifest.ranking_task)
        read += zip(queries, passages, strict=True)
        scores += answer.score
        raw += answer.raw
    timings.share = 1.0
    if len(places) > _PART:
        await asyncio.sleep(0)
    order = best_first(raw)
    return _Stage(
        places=[places[n] for n in order],
        scores=[scores[n] for n in order],
        raw=[raw[n] for n in order],
        truncated={
            "query": any(asked.truncated for asked, _ in read),
            "candidates": sorted(i for i, (_, candidate) in zip(places, read, strict=True) if candidate.truncated),
        },
        query_language=asked.language,
        languages={
            i: candidate.language
            for i, (_, candidate) in zip(places, read, strict=True)
            if candidate.language is not None
        },
    )


def _field(places: Sequence[int], n: int) -> str:
    return f"candidates.{places[n]}"
