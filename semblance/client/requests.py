"""The requests that a client makes and the parsing of their answers, without I/O; both clients' methods stand here.

Each method of `ServiceRequests` is a generator. It yields a list of independent requests, receives their answers in
the same order, and returns the parsed result. Input that is too large for one request is split by the limits in
`GET /models`, which each client reads once; and a request that the service refuses because it would take too long, by
what it says that would not.
"""

import heapq
import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from semblance.client.faq import FAQ, Reply
from semblance.client.retries import retry_after
from semblance.errors import InvalidArgument, InvalidRequest, RequestFailed, UnexpectedAnswer, request_failed
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
_adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


@dataclass(frozen=True)
class Call:
    """One request to the service.

    Attributes:
        path: of the route.
        content: what to post, without its values that are None; a GET without it.
        places: position of each item of the body in the client's input, for errors that name an item.
        items: the field that holds these items.
        fine: statuses that are not errors.
    """

    path: str
    content: Mapping[str, Any] | None = None
    places: Sequence[int] = ()
    items: str = ""
    fine: frozenset[int] = frozenset({200})

    @property
    def method(self) -> str:
        """The HTTP method of the request."""
        return "GET" if self.content is None else "POST"

    @cached_property
    def body(self) -> bytes | None:
        """The content as JSON."""
        if self.content is None:
            return None
        given = {name: value for name, value in self.content.items() if value is not None}
        try:
            return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # a lone surrogate: sent escaped, so that the service's error names its field
            return json.dumps(given, separators=(",", ":")).encode()

    def parts(self, most: int) -> "list[Call]":
        """The same in requests of `most` items each."""
        content = self.content or {}
        given = content[self.items]
        return [
            replace(self, content={**content, self.items: given[i : i + most]}, places=self.places[i : i + most])
            for i in range(0, len(given), most)
        ]

    def fitting(self, room: int) -> "list[Call]":
        """The same in requests of at most `room` bytes, halved until they fit; a single item is sent at any size."""
        if len(self.body or b"") <= room or len(self.places) == 1:
            return [self]
        return [part for half in self.parts((len(self.places) + 1) // 2) for part in half.fitting(room)]


Answer = bytes | RequestFailed  # the latter where the service says how many items it would answer in time
Steps = Generator[list[Call], list[Answer], T]
ScoredTask = Literal["similarity", "paraphrase", "relevance"] | None  # of pairs; None: similarity
Role = Literal["query", "passage"] | None  # of texts to embed, for models with prompts; None: neither


def read(call: Call, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The body of an answer; or the error, if fewer items would be answered.

    Raises:
        RequestFailed: the status is not in `call.fine`.
    """
    if status in call.fine:
        return body
    error = request_failed(status, body, headers.get("x-request-id"), retry_after(headers))
    if error.code == "too_slow" and isinstance(error.limit, int) and 0 < error.limit < len(call.places):
        return error
    raise error.at(call.places, call.items)


class ServiceRequests:
    """Requests to one service; keeps its answer to `GET /models`."""

    def __init__(self, max_items: int | None = None) -> None:
        """Store the most pairs, candidates or sentences in one request, if fewer than the service allows."""
        self._max_items = max_items
        self._served: Models | None = None

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
        items = [{"a": a, "b": b} for a, b in _pairs(pairs)]
        fixed = {"task": task, "model": model}
        return (yield from self._joined(Similarities, "/similarity", "pairs", items, fixed))

    def entailment(self, pairs: Iterable[tuple[str, str]], *, model: str | None = None) -> Steps[Entailments]:
        """Label pairs of premise and hypothesis; any number of them."""
        items = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in _pairs(pairs)]
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
        given = documents if isinstance(documents, str) else _texts("documents", documents)
        fixed = {"documents": given, "encoder": encoder, "model": model}
        return (yield from self._joined(Claims, "/claims", "claims", _texts("claims", claims), fixed))

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
        given = _texts("texts", texts)
        body = {"texts": given, "model": model, "pair_model": pair_model, "guard": guard}
        (answer,) = yield [Call("/dedupe", body)]
        return _whole(_parse(Duplicates, answer), len(given))

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
        given = None if labels is None else _texts("labels", labels)
        fixed = {"labels": given, "template": template, "multi_label": multi_label or None, "model": model}
        limit = "max_sentences" if given is None else "max_pairs"
        items = _texts("texts", texts)
        return (yield from self._joined(Labels, "/classify", "text", items, fixed, limit, len(given or ())))

    def embed(self, sentences: Iterable[str], *, model: str | None = None, role: Role = None) -> Steps[Embeddings]:
        """Embed sentences, any number of them; `role`: as queries or passages, with the model's prompt for it."""
        given = _texts("sentences", sentences)
        parts = yield from self._parts(EmbedResponse, "/embed", "sentences", given, {"role": role, "model": model})
        return Embeddings(
            parts[0].model,
            parts[0].dim,
            np.concatenate([np.asarray(part.embeddings, dtype=np.float32) for part in parts]),
            [truncated for part in parts for truncated in part.truncated],
        )

    def explain(self, a: str, b: str, *, model: str | None = None) -> Steps[Explanation]:
        """Explain the score of two sentences, by token."""
        (answer,) = yield [Call("/explain", {"a": _text("a", a), "b": _text("b", b), "model": model})]
        return _parse(Explanation, answer)

    def models(self) -> Steps[Models]:
        """The served models with their figures, and the limits of a request."""
        return (yield from self._models("/models?full=true"))

    def health(self) -> Steps[Readiness]:
        """The readiness of the service; raises nothing when the service answers that it is not ready."""
        (answer,) = yield [Call("/health/ready", fine=frozenset({200, 503}))]
        return _parse(Readiness, answer)

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

        Candidates that need several requests are ordered request by request and merged by raw score. The second stage
        then reorders the best of all of them. Of such a ranking there is no confidence.

        Args:
            query: the text to compare with.
            candidates: any number of them; the order does not depend on the number of requests.
            top_k: number of best candidates to return; None: all.
            model: id of the model.
            rerank_model: id of a second model, which reorders the best candidates.
            rerank_top: number of candidates it reorders.
            min_score: where the best one has a lower score, nothing is answered: there are no results.
            min_confidence: likewise, where the confidence is lower; for candidates that fit one request.

        Raises:
            InvalidArgument: min_confidence, and the candidates need several requests.
        """
        given = _texts("candidates", candidates)
        fixed = {"query": _text("query", query), "model": model, "top_k": top_k}
        second = {"rerank_model": rerank_model, "rerank_top": rerank_top}
        least = {"min_score": min_score, "min_confidence": min_confidence}
        calls = yield from self._split("/rank", "candidates", given, {**fixed, **second, **least})
        if len(calls) == 1:
            (answer,) = yield calls
            if isinstance(answer, bytes):
                return _ranking(answer, len(given))
        if min_confidence is not None:
            raise InvalidArgument("min_confidence: there is no confidence of candidates that need several requests")
        merged = yield from self._ranked_in_parts(given, fixed, rerank_model, rerank_top)
        if min_score is not None and merged.results and merged.results[0].score < min_score:
            return replace(merged, results=[], answered=False)
        return merged

    def answer(self, query: str, faq: FAQ) -> Steps[Reply]:
        """Answer a question from an FAQ, or say that it has no answer.

        Args:
            query: the question.
            faq: what `semblance choose --faq` wrote (`FAQ.load`).
        """
        (found,) = yield [Call("/rank", {"query": _text("query", query), **faq.body()})]
        ranking = _ranking(found, len(faq.entries))
        entry = faq.entries[ranking.results[0].index] if ranking.results else None
        return Reply(entry, ranking.confidence, ranking)

    def _ranked_in_parts(
        self, given: Sequence[str], fixed: Mapping[str, Any], rerank_model: str | None, rerank_top: int | None
    ) -> Steps[Ranking]:
        """Order candidates that need several requests."""
        if rerank_model is None and rerank_top is None:
            return (yield from self._merged(given, range(len(given)), fixed))
        top_k: int | None = fixed["top_k"]
        served = yield from self._served_there()
        rerank_model, rerank_top = rerank_model or served.rerank.default_model, rerank_top or served.rerank.default_top
        if rerank_model is None:
            message = "there is no default model for the second stage; name one"
            raise InvalidRequest(422, "invalid_request", message, field="rerank_model")
        kept = None if top_k is None else max(top_k, rerank_top)
        coarse = yield from self._merged(given, range(len(given)), {**fixed, "top_k": kept})
        best = sorted(result.index for result in coarse.results[:rerank_top])  # as the service: of equal ones in order
        fine = yield from self._merged(given, best, {**fixed, "model": rerank_model, "top_k": None})
        results = [replace(result, stage=2) for result in fine.results]
        results += [replace(result, stage=1) for result in coarse.results[rerank_top:]]
        return replace(
            coarse,
            results=results[:top_k],
            rerank_model=fine.model,
            rerank_scale=fine.scale,
            rerank_truncated=fine.truncated,
        )

    def _merged(self, given: Sequence[str], places: Sequence[int], fixed: Mapping[str, Any]) -> Steps[Ranking]:
        """Order the candidates at the positions `places` by one model, in as many requests as needed."""
        calls = yield from self._split("/rank", "candidates", [given[i] for i in places], fixed)
        answers = yield from _answers(calls)
        parts = [_ranking(answer, len(call.places)) for call, answer in answers]
        ordered: list[list[RankResult]] = []
        truncated: list[int] = []
        for (call, _), part in zip(answers, parts, strict=True):  # its places are positions in ours
            at = [places[i] for i in call.places]
            ordered.append([replace(result, index=at[result.index]) for result in part.results])
            truncated += [at[i] for i in part.truncated.candidates]  # rising, as places and parts are
        # As the service orders: calibration makes equals of scores that differ. Of equal ones the earlier part first.
        merged = heapq.merge(*ordered, key=lambda result: -result.raw_score)
        return replace(  # what is said of the query, each part says
            parts[0],
            results=list(islice(merged, fixed["top_k"])),
            truncated=RankTruncated(query=any(part.truncated.query for part in parts), candidates=truncated),
            answered=True,  # of all candidates there is no confidence
            confidence=None,
            threshold=None,
        )

    def _joined(self, kind: type[T], *request: Any) -> Steps[T]:
        """The answers to the requests of `_split` as one, with the results of all."""
        parts: list[Any] = yield from self._parts(kind, *request)
        whole: T = replace(parts[0], results=[result for part in parts for result in part.results])
        return whole

    def _parts(self, kind: type[T], *request: Any) -> Steps[list[T]]:
        """The answers to the requests of `_split`, in order."""
        calls = yield from self._split(*request)
        return [_whole(_parse(kind, answer), len(call.places)) for call, answer in (yield from _answers(calls))]

    def _split(
        self, path: str, name: str, items: Sequence[Any], fixed: Mapping[str, Any], limit: str = "", each: int = 1
    ) -> Steps[list[Call]]:
        """The requests that carry all items in the field `name`, within the limits `max_<name>` and `max_body_bytes`.

        A single item needs no limits, and so no `GET /models` before. `limit` is another limit, of which each item
        takes up `each`.
        """
        whole = Call(path, {name: items, **fixed}, range(len(items)), name)
        if len(items) <= 1:
            return [whole]
        limits = (yield from self._served_there()).limits
        most: int = max(1, getattr(limits, limit or f"max_{name}") // max(1, each))
        parts = whole.parts(min(most, self._max_items or len(items)))
        return [call for part in parts for call in part.fitting(limits.max_body_bytes)]

    def _served_there(self) -> Steps[Models]:
        return self._served or (yield from self._models("/models"))

    def _models(self, path: str) -> Steps[Models]:
        (answer,) = yield [Call(path)]
        self._served = _parse(Models, answer)
        return self._served


def _answers(calls: list[Call]) -> Steps[list[tuple[Call, Answer]]]:
    """The answers to these requests, and to parts of those that would take too long; each with its request."""
    found: list[tuple[Call, Answer]] = []
    for call, answer in zip(calls, (yield calls), strict=True):
        if isinstance(answer, RequestFailed) and answer.field == call.items and isinstance(answer.limit, int):
            found += yield from _answers(call.parts(answer.limit))
        else:
            found.append((call, answer))
    return found


def _text(field: str, given: object) -> str:
    """The text; raises InvalidArgument if it is none."""
    if not isinstance(given, str):
        raise InvalidArgument(f"{field}: expected a text, found {_kind(given)}")
    return given


def _texts(field: str, given: object) -> list[str]:
    """A list of the texts; raises InvalidArgument if they are none, or a single text instead of several."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(f'{field}: expected a list of texts, such as ["A dog runs."], found {_kind(given)}')
    return [_text(f"{field}.{i}", text) for i, text in enumerate(given)]


def _pairs(given: object) -> list[tuple[str, str]]:
    """A list of the pairs; raises InvalidArgument if they are none."""
    wanted = '[("A dog runs.", "A cat sleeps.")]'
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(f"pairs: expected a list of pairs of texts, such as {wanted}, found {_kind(given)}")
    pairs = []
    for i, pair in enumerate(given):
        sides = [pair] if isinstance(pair, str | Mapping) or not isinstance(pair, Iterable) else list(pair)
        if len(sides) != 2:
            found = _kind(pair) if len(sides) == 1 else f"{len(sides)} values"
            raise InvalidArgument(f"pairs.{i}: expected two texts, as in {wanted}, found {found}")
        pairs.append((_text(f"pairs.{i}.a", sides[0]), _text(f"pairs.{i}.b", sides[1])))
    return pairs


def _kind(found: object) -> str:
    if not isinstance(found, str):
        return "None" if found is None else f"a value of type {type(found).__name__}"
    return f"the text {found[:40] + '...' if len(found) > 40 else found!r}"


def _parse(kind: type[T], answer: Answer) -> T:
    if isinstance(answer, RequestFailed):
        raise answer
    try:
        parsed: T = _adapter_of(kind).validate_json(answer)
        return parsed
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"])) or "the body"
        raise UnexpectedAnswer(f"not an answer of this service: {where}: {problem['msg']}") from None


def _whole(parsed: T, count: int) -> T:
    """The answer about `count` items.

    Raises:
        UnexpectedAnswer: it is about fewer or more, or has embeddings of another size than it says.
    """
    items: Any = parsed.embeddings if isinstance(parsed, EmbedResponse) else parsed.results  # type: ignore[attr-defined]
    if len(items) != count:
        raise UnexpectedAnswer(f"not an answer of this service: {len(items)} results for {count} items")
    if isinstance(parsed, EmbedResponse) and any(len(row) != parsed.dim for row in items):
        raise UnexpectedAnswer(f"not an answer of this service: embeddings: expected {parsed.dim} numbers in each")
    return parsed


def _ranking(answer: Answer, count: int) -> Ranking:
    """The order of `count` candidates.

    Raises:
        UnexpectedAnswer: it names one that was not given.
    """
    parsed = _parse(Ranking, answer)
    for index in (*(result.index for result in parsed.results), *parsed.truncated.candidates):
        if not 0 <= index < count:
            raise UnexpectedAnswer(f"not an answer of this service: candidate {index} of {count}")
    return parsed
