"""What a client asks of the service, without I/O: both clients' methods stand here.

Each method of `ServiceRequests` is a generator. It yields a list of independent requests, receives their answers in
the same order, and returns the parsed result. Input that is too large for one request is split by the limits in
`GET /models`, which each client reads once, and anew after a refusal for size; and a request that the service refuses
because it would take too long, by what it says that would not.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

import numpy as np

from core.ranking import SUGGESTIONS
from semblance.client.calls import (
    Call,
    Steps,
    answers_to,
    check_pairs,
    check_places,
    check_same,
    check_text,
    check_texts,
    parse,
    parse_ranking,
    parse_results,
)
from semblance.client.faq import FAQ, Reply
from semblance.errors import InvalidRequest, TooLarge, UnexpectedAnswer
from semblance.types import (
    Claims,
    Duplicates,
    Embeddings,
    EmbedResponse,
    Entailments,
    Explanation,
    Labels,
    Models,
    Ranking,
    RankResult,
    RankTruncated,
    Readiness,
    Similarities,
)

T = TypeVar("T")
ScoredTask = Literal["similarity", "paraphrase", "relevance"] | None  # of pairs; None: similarity
Role = Literal["query", "passage"] | None  # of texts to embed, for models with prompts; None: neither


class ServiceRequests:
    """Requests to one service; keeps its answer to `GET /models`."""

    def __init__(self, max_items: int | None = None) -> None:
        """Store the most pairs, candidates or sentences in one request, if fewer than the service allows."""
        self._max_items = max_items
        self._known_models: Models | None = None

    def similarity(
        self, pairs: Iterable[tuple[str, str]], *, model: str | None = None, task: ScoredTask = None
    ) -> Steps[Similarities]:
        """Score pairs of sentences; any number of them, in as many requests as needed.

        Args:
            pairs: (a, b).
            model: id of the model.
            task: "paraphrase", or "relevance" of b to a, for the probability of that, from a model that has it;
                similarity by default.
        """
        items = [{"a": a, "b": b} for a, b in check_pairs(pairs)]
        fixed = {"task": task, "model": model}
        return (yield from self._joined(Similarities, "/similarity", "pairs", items, fixed))

    def entailment(self, pairs: Iterable[tuple[str, str]], *, model: str | None = None) -> Steps[Entailments]:
        """Label pairs of premise and hypothesis; any number of them."""
        items = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in check_pairs(pairs)]
        return (yield from self._joined(Entailments, "/entailment", "pairs", items, {"model": model}))

    def claims(
        self,
        documents: str | Iterable[str],
        claims: Iterable[str],
        *,
        model: str | None = None,
        encoder: str | None = None,
    ) -> Steps[Claims]:
        """What documents say of claims, and where.

        Args:
            documents: a text, or several; plain or in Markdown.
            claims: any number of them; each is held against all documents together.
            model: id of a model with entailment, which reads passages with claims.
            encoder: id of the model whose embeddings find the passages.
        """
        given = documents if isinstance(documents, str) else check_texts("documents", documents)
        fixed = {"documents": given, "encoder": encoder, "model": model}
        joined = yield from self._joined(Claims, "/claims", "claims", check_texts("claims", claims), fixed)
        found = (passage for each in joined.results for passage in (each.evidence, each.runner_up) if passage)
        check_places("document", (passage.document for passage in found), 1 if isinstance(given, str) else len(given))
        return joined

    def dedupe(
        self,
        texts: Iterable[str],
        *,
        model: str | None = None,
        pair_model: str | None = None,
        guard: bool = True,
    ) -> Steps[Duplicates]:
        """Which texts say the same; for more than 2,000 `semblance dedupe` reads a file.

        Args:
            texts: at most 2,000.
            model: id of the model whose embeddings find the nearest texts.
            pair_model: id of a model with paraphrase and entailment, which reads near pairs.
            guard: keep texts apart that differ in a fact.
        """
        given = check_texts("texts", texts)
        body = {"texts": given, "model": model, "pair_model": pair_model, "guard": guard}
        (answer,) = yield [Call("/dedupe", body)]
        return parse_results(Duplicates, answer, len(given))

    def classify(
        self,
        texts: Iterable[str],
        labels: Iterable[str] | None = None,
        *,
        template: str | None = None,
        multi_label: bool = False,
        model: str | None = None,
    ) -> Steps[Labels]:
        """Label texts; any number of them.

        Args:
            texts: to label; each makes a pair with each of the labels given.
            labels: any, judged by an entailment model; None: those that a model has itself.
            template: turns a label, in the place of {}, into a hypothesis.
            multi_label: whether each label is judged by itself.
            model: id of a model with entailment, or, without labels, of one with labels.
        """
        given = None if labels is None else check_texts("labels", labels)
        fixed = {"labels": given, "template": template, "multi_label": multi_label or None, "model": model}
        limit = "max_sentences" if given is None else "max_pairs"
        items = check_texts("texts", texts)
        return (yield from self._joined(Labels, "/classify", "text", items, fixed, limit, len(given or ())))

    def embed(self, sentences: Iterable[str], *, model: str | None = None, role: Role = None) -> Steps[Embeddings]:
        """Embed sentences, any number of them; `role`: as queries or passages, with the model's prompt for it."""
        given = check_texts("sentences", sentences)
        parts = yield from self._parts(EmbedResponse, "/embed", "sentences", given, {"role": role, "model": model})
        check_same(parts, "dim")
        with np.errstate(over="ignore"):
            vectors = np.concatenate([np.asarray(part.embeddings, dtype=np.float32) for part in parts])
        if not np.isfinite(vectors).all():
            raise UnexpectedAnswer("not an answer of this service: embeddings: a number is too large")
        return Embeddings(
            parts[0].model,
            parts[0].dim,
            vectors,
            [truncated for part in parts for truncated in part.truncated],
        )

    def explain(self, a: str, b: str, *, model: str | None = None) -> Steps[Explanation]:
        """Explain the score of two sentences, by token."""
        (answer,) = yield [Call("/explain", {"a": check_text("a", a), "b": check_text("b", b), "model": model})]
        return parse(Explanation, answer)

    def models(self) -> Steps[Models]:
        """The served models with their figures, and the limits of a request."""
        return (yield from self._models("/models?full=true"))

    def health(self) -> Steps[Readiness]:
        """The readiness of the service; raises nothing when the service answers that it is not ready."""
        (answer,) = yield [Call("/health/ready", ok_statuses=frozenset({200, 503}))]
        return parse(Readiness, answer)

    def rank(
        self,
        query: str,
        candidates: Iterable[str],
        *,
        top_k: int | None = None,
        model: str | None = None,
        rerank_model: str | None = None,
        rerank_top: int | None = None,
        min_score: float | None = None,
        min_confidence: float | None = None,
    ) -> Steps[Ranking]:
        """Order candidates by their similarity to a query.

        Candidates that need several requests are ordered request by request and merged by raw score: by one model, and
        without a confidence.

        Args:
            query: the text to compare with.
            candidates: any number of them; the order does not depend on the number of requests.
            top_k: number of best candidates to return; None: all.
            model: id of the model.
            rerank_model: id of a second model, which reorders the best of candidates that fit one request.
            rerank_top: number of candidates it reorders.
            min_score: where the best one has a lower score, nothing is answered: there are no results.
            min_confidence: likewise, where the confidence is lower; for candidates that fit one request.

        Raises:
            InvalidRequest: min_confidence or a second stage, and the candidates need several requests.
        """
        given = check_texts("candidates", candidates)
        fixed = {"query": check_text("query", query), "model": model, "top_k": top_k}
        second = {"rerank_model": rerank_model, "rerank_top": rerank_top}
        least = {"min_score": min_score, "min_confidence": min_confidence}
        calls = yield from self._split("/rank", "candidates", given, {**fixed, **second, **least})
        if len(calls) == 1:
            (answer,) = yield calls
            if isinstance(answer, bytes):
                return parse_ranking(answer, len(given), len(given) if top_k is None else top_k)
        for name, value in {"min_confidence": min_confidence, **second}.items():
            if value is not None:
                raise _invalid("candidates", f"they need several requests, and {name} is for those of one")
        if min_score is not None and not (isinstance(min_score, Real) and 0 <= min_score <= 1):
            raise _invalid("min_score", f"expected a number from 0 to 1, found {min_score!r}")
        is_number = isinstance(top_k, Integral) and not isinstance(top_k, bool) and top_k > 0
        if min_score is None or not (top_k is None or is_number):  # what is none the service refuses
            return (yield from self._merged(given, fixed))
        at_least = None if top_k is None else max(top_k, SUGGESTIONS)
        merged = yield from self._merged(given, {**fixed, "top_k": at_least})
        if merged.results and merged.results[0].score < min_score:
            return replace(merged, results=[], answered=False, suggestions=merged.results[:SUGGESTIONS])
        return replace(merged, results=merged.results[:top_k])

    def answer(self, query: str, faq: FAQ) -> Steps[Reply]:
        """Answer a question from an FAQ, or say that it has no answer.

        Args:
            query: the question.
            faq: what `semblance choose --faq` wrote (`FAQ.load`).
        """
        (found,) = yield [Call("/rank", {**faq.body(), "query": check_text("query", query)})]
        ranking = parse_ranking(found, len(faq.entries))
        entry = faq.entries[ranking.results[0].index] if ranking.results else None
        return Reply(entry, ranking.confidence, ranking)

    def _merged(self, given: Sequence[str], fixed: Mapping[str, Any]) -> Steps[Ranking]:
        """Order candidates by one model, in as many requests as needed."""
        answers = yield from answers_to((yield from self._split("/rank", "candidates", given, fixed)))
        most = len(given) if fixed["top_k"] is None else fixed["top_k"]
        parts = [parse_ranking(answer, len(call.places), most) for call, answer in answers]
        check_same(parts, "scale")
        ordered: list[list[RankResult]] = []
        truncated: list[int] = []
        for (call, _), part in zip(answers, parts, strict=True):  # its places are positions in ours
            ordered.append([replace(result, index=call.places[result.index]) for result in part.results])
            truncated += [call.places[i] for i in part.truncated.candidates]  # rising, as places and parts are
        # As the service orders: calibration makes equals of scores that differ. Of equal ones the earlier part first.
        merged = heapq.merge(*ordered, key=lambda result: (-result.score, -result.raw_score))
        return replace(  # what is said of the query, each part says
            parts[0],
            results=list(merged)[: fixed["top_k"]],
            truncated=RankTruncated(query=any(part.truncated.query for part in parts), candidates=truncated),
            answered=True,  # of all candidates there is no confidence
            confidence=None,
            threshold=None,
        )

    def _joined(self, kind: type[T], *request: Any) -> Steps[T]:
        """The answers to the requests of `_split` as one, with the results of all."""
        parts: list[Any] = yield from self._parts(kind, *request)
        check_same(parts, *(field for field in ("scale", "encoder") if hasattr(parts[0], field)))
        whole: T = replace(parts[0], results=[result for part in parts for result in part.results])
        return whole

    def _parts(self, kind: type[T], *request: Any) -> Steps[list[T]]:
        """The answers to the requests of `_split`, in order."""
        calls = yield from self._split(*request)
        return [parse_results(kind, answer, len(call.places)) for call, answer in (yield from answers_to(calls))]

    def _split(
        self, path: str, name: str, items: Sequence[Any], fixed: Mapping[str, Any], limit: str = "", each: int = 1
    ) -> Steps[list[Call]]:
        """The requests that carry all items in the field `name`, within the limits `max_<name>` and `max_body_bytes`.

        A single item needs no limits, and so no `GET /models` before. `limit` is another limit, of which each item
        takes up `each`.

        Raises:
            TooLarge: one item with the other fields is more than a body may be.
        """
        whole = Call(path, {name: items, **fixed}, range(len(items)), name)
        if len(items) <= 1:
            return [whole]
        limits = (yield from self._models_once()).limits
        one = len(replace(whole, content={name: items[:1], **fixed}).body or b"")
        if one > limits.max_body_bytes:
            message = f"a body of {one} bytes with one of the {name}, the limit is {limits.max_body_bytes}"
            raise TooLarge(413, "too_large", message, limit=limits.max_body_bytes)
        size: int = max(1, getattr(limits, limit or f"max_{name}") // max(1, each))
        parts = whole.parts(min(size, self._max_items or len(items)))
        return [call for part in parts for call in part.fitting(limits.max_body_bytes)]

    def forget_limits(self) -> None:
        """Read them anew when they are needed: what was sent by them was too large."""
        self._known_models = None

    def _models_once(self) -> Steps[Models]:
        """What the service serves, asked once."""
        return self._known_models or (yield from self._models("/models"))

    def _models(self, path: str) -> Steps[Models]:
        (answer,) = yield [Call(path)]
        found = parse(Models, answer)
        for name, limit in asdict(found.limits).items():
            if limit <= 0:
                raise UnexpectedAnswer(f"not an answer of this service: limits: {name} is {limit}")
        self._known_models = found
        return found


def _invalid(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(422, "invalid_request", message, field=field)
