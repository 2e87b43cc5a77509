"""Candidates ordered by their similarity to a query, by one model or by two.

In two stages a model that is cheap by the candidate orders all of them, and a better one, which reads query and
candidate together, orders the best of these again.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from service.schemas import RankResponse, RankResult, RankTruncated
from service.scorer import Scorer


class _Stage(NamedTuple):
    best_first: list[int]  # positions in the request; of equal ones the first given first
    scores: dict[int, float]
    truncated: RankTruncated
    cached: dict[int, bool]

    def result(self, i: int, tell_cached: bool) -> RankResult:
        """Of the candidate that stands there."""
        if tell_cached:
            return {"index": i, "score": self.scores[i], "cached": self.cached[i]}
        return {"index": i, "score": self.scores[i]}


async def rank(
    scorer: Scorer, query: str, candidates: Sequence[str], top_k: int | None, *, tell_cached: bool = False
) -> RankResponse:
    """Order the candidates by one model.

    Raises:
        EmptyText: the query, or a candidate, without a visible character.
        InferenceFailed: a graph raised, or gave a number that is not finite.
    """
    stage = await _order(scorer, query, candidates, range(len(candidates)), tell_cached)
    answer: RankResponse = {
        "model": scorer.id,
        "results": [stage.result(i, tell_cached) for i in stage.best_first[:top_k]],
        "truncated": stage.truncated,
    }
    if scorer.version is not None:
        answer["model_version"] = scorer.version
    return answer


async def rank_twice(
    first: Scorer,
    second: Scorer,
    query: str,
    candidates: Sequence[str],
    *,
    rerank_top: int,
    top_k: int | None,
    tell_cached: bool = False,
) -> RankResponse:
    """Order the candidates by `first`, and the best `rerank_top` of them again by `second`; raises as `rank`.

    The second stage decides over the first: what it has not seen comes after all that it has.
    """
    coarse = await _order(first, query, candidates, range(len(candidates)), tell_cached)
    fine = await _order(second, query, candidates, coarse.best_first[:rerank_top], tell_cached)
    results: list[RankResult] = [{**fine.result(i, tell_cached), "stage": 2} for i in fine.best_first]
    for i in coarse.best_first[rerank_top:top_k]:
        results.append({**coarse.result(i, tell_cached), "stage": 1})
    answer: RankResponse = {
        "model": first.id,
        "results": results[:top_k],
        "truncated": coarse.truncated,
        "rerank_model": second.id,
        "rerank_truncated": fine.truncated,
    }
    if first.version is not None:
        answer["model_version"] = first.version
    if second.version is not None:
        answer["rerank_model_version"] = second.version
    return answer


async def _order(
    scorer: Scorer, query: str, candidates: Sequence[str], places: Sequence[int], tell_cached: bool
) -> _Stage:
    """Order the candidates that stand at these places of the request."""
    texts = [query, *(candidates[i] for i in places)]
    asked, *read = await scorer.read(texts, lambda n: f"candidates.{places[n - 1]}" if n else "query")
    answer = await scorer.similarity([asked] * len(read), read)
    return _Stage(
        best_first=[places[n] for n in np.argsort(-np.array(answer.raw), kind="stable").tolist()],
        scores=dict(zip(places, answer.score, strict=True)),
        truncated={
            "query": asked.truncated,
            "candidates": sorted(i for i, candidate in zip(places, read, strict=True) if candidate.truncated),
        },
        cached={i: scorer.were_cached(asked, one, answer.computed)[1] for i, one in zip(places, read, strict=True)}
        if tell_cached
        else {},
    )
