"""Ranking: candidates ordered by their relevance or similarity to a query, in one stage or two.

In two stages a fast model orders all candidates, and the scores of a second one, with those of the first, order the
best of these again. Where a fit is given, the answer says how probable it is that the first one is right. What is asked
is a `RankRequest` (`service/schemas.py`), what is answered a `Ranking` (`core/answers.py`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from core.ranking import SUGGESTIONS, ConfidenceFit, both_stages, of_stage, shared_words
from core.scoring import best_first, round_significant
from service.engine.admission import RequestContext, give_way
from service.errors import TooSlow
from service.schemas import SCALES, Answer, RankResponse
from service.scoring.scorer import Scorer

RERANK_TOP = 15  # candidates of a second stage unless a request says: best on development questions


class Candidates(NamedTuple):
    """n candidates, each of one text, or of two, of which the better score counts."""

    field: str  # of the request, that has them
    texts: Sequence[str]  # those of a candidate follow each other
    names: Sequence[str] = ("",)  # where within a candidate each of its texts stands, such as ".answer"

    @property
    def texts_each(self) -> int:
        """How many texts a candidate has."""
        return len(self.names)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.texts) // self.texts_each

    def field_of(self, i: int) -> str:
        """The field of the request of the i-th text."""
        return f"{self.field}.{i // self.texts_each}{self.names[i % self.texts_each]}"

    def text_of(self, index: int) -> str:
        """All texts of a candidate, joined."""
        return " ".join(self.texts[index * self.texts_each : (index + 1) * self.texts_each])


class RankOptions(NamedTuple):
    """Options of a ranking."""

    top_k: int | None  # results; None: all
    rerank_top: int  # candidates that the second stage orders
    fit: ConfidenceFit | None  # for the models that rank; None: no confidence
    min_score: float | None  # that the first candidate must have to be the answer
    threshold: float | None  # the same of its confidence, where that is known
    suggest_if_unanswered: bool  # without an answer there are suggestions, no results


class _Stage(NamedTuple):
    """Candidates best first by its scores or by both stages', equal ones in the order of the request."""

    indices: list[int]  # in the request
    scores: list[float]
    raw: list[float]
    truncated: Answer

    def results(self, first: int = 0, last: int | None = None) -> list[Answer]:
        """The results of these ranks."""
        ranks = slice(first, last)
        return [
            {"index": i, "score": score, "raw_score": raw}
            for i, score, raw in zip(self.indices[ranks], self.scores[ranks], self.raw[ranks], strict=True)
        ]


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
    read_again = min(options.rerank_top, candidates.size) * candidates.texts_each
    with context.before(0.0 if second is None else read_again * second.seconds_per_new_pair):
        first_stage = await _order(context, first, query, candidates, range(candidates.size))
    second_stage = None
    if second is not None:
        best = first_stage.indices[: options.rerank_top]
        try:
            second_stage = _by_both_stages(first_stage, await _order(context, second, query, candidates, best))
        except TooSlow as error:
            raise TooSlow(error.seconds, error.possible).of("rerank_top", len(best)) from None
    await give_way(candidates.size)
    confidence = _confidence(options.fit, query, candidates, first_stage, second_stage)
    threshold = None if confidence is None else options.threshold
    answered = (options.min_score is None or (second_stage or first_stage).scores[0] >= options.min_score) and (
        confidence is None or threshold is None or confidence >= threshold
    )
    declined = options.suggest_if_unanswered and not answered
    top_k = SUGGESTIONS if declined else options.top_k
    if second_stage is None:
        results = first_stage.results(last=top_k)
    else:
        results = [{**each, "stage": 2} for each in second_stage.results(last=top_k)]
        results += [{**each, "stage": 1} for each in first_stage.results(options.rerank_top, top_k)]
    answer: RankResponse = {
        "model": first.id,
        "scale": SCALES[first.ranking_task],
        "answered": answered,
        "confidence": confidence,
        "threshold": threshold,
        "results": [] if declined else results,
        "truncated": first_stage.truncated,
    }
    if declined:
        answer["suggestions"] = results
    if second is not None and second_stage is not None:
        answer["rerank_model"] = second.id
        answer["rerank_scale"] = SCALES[second.ranking_task]
        answer["rerank_truncated"] = second_stage.truncated
    return answer


def _confidence(
    fit: ConfidenceFit | None, query: str, candidates: Candidates, first_stage: _Stage, second_stage: _Stage | None
) -> float | None:
    """The probability that the first candidate is right; None if there is no fit, or only one candidate."""
    last = second_stage or first_stage
    if fit is None or len(last.indices) < 2:
        return None
    first = last.indices[0]
    features = [
        *of_stage(first_stage.raw, first_stage.indices.index(first)),
        shared_words(query, candidates.text_of(first)),
    ]
    if second_stage is not None:
        features += of_stage(second_stage.raw, 0)
    return round_significant(fit.probability(features))


async def _order(
    context: RequestContext, scorer: Scorer, query: str, candidates: Candidates, indices: Sequence[int]
) -> _Stage:
    """Order the candidates at these indices of the request."""
    each = candidates.texts_each
    text_indices = indices if each == 1 else [i * each + n for i in indices for n in range(each)]
    texts = [candidates.texts[i] for i in text_indices]
    (tokenised_query,) = await scorer.tokenise(context, [query], lambda _: "query", role="query")
    sentences = await scorer.tokenise(context, texts, lambda n: candidates.field_of(text_indices[n]), role="passage")
    if scorer.manifest.prompts is None:  # the same text is one object
        sentences = [tokenised_query if text == query else x for text, x in zip(texts, sentences, strict=True)]
    queries, passages = scorer.fit([tokenised_query] * len(texts), sentences)
    answer = await scorer.similarity(context, queries, passages, scorer.ranking_task)
    await give_way(len(texts))
    scores, raw = answer.score, answer.raw
    # Equal texts share the score of the first: in another batch its last digits may differ.
    first_index: dict[str, int] = {}
    shared = [first_index.setdefault(text, n) for n, text in enumerate(texts)]
    if len(first_index) < len(texts):
        scores, raw = [scores[n] for n in shared], [raw[n] for n in shared]
    if each > 1:  # of the texts of a candidate the better one, and of equal ones the first
        keys = list(zip(scores, raw, strict=True))
        better = [max(range(n, n + each), key=keys.__getitem__) for n in range(0, len(texts), each)]
        scores, raw = [scores[n] for n in better], [raw[n] for n in better]
    order = best_first(raw, scores)
    cut = {i // each for i, text in zip(text_indices, passages, strict=True) if text.truncated}
    return _Stage(
        indices=[indices[n] for n in order],
        scores=[scores[n] for n in order],
        raw=[raw[n] for n in order],
        truncated={"query": any(text.truncated for text in queries), "candidates": sorted(cut)},
    )


def _by_both_stages(first: _Stage, second: _Stage) -> _Stage:
    """The candidates that a second stage read, with its scores, in the order of both; of equal ones in the first's."""
    at = {index: n for n, index in enumerate(second.indices)}
    read = [at[index] for index in first.indices[: len(at)]]
    order = [read[n] for n in best_first(both_stages(first.raw[: len(at)], [second.raw[n] for n in read]))]
    return second._replace(
        indices=[second.indices[n] for n in order],
        scores=[second.scores[n] for n in order],
        raw=[second.raw[n] for n in order],
    )
