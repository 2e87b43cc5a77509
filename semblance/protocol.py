"""Builds requests and parses answers, without I/O; the methods of both clients are declared here.

Each method of `ServiceRequests` is a generator. It yields a list of independent requests, receives their answers in
the same order, and returns the parsed result. Input that is too large for one request is split by the limits in
`GET /models`, which each client reads once; and a request that the service refuses because it would take too long, by
what it says that would not.
"""

import heapq
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from semblance.errors import InvalidArgument, InvalidRequest, RequestFailed, UnexpectedAnswer, request_failed
from semblance.faq.saved import FAQ, Reply
from semblance.retries import retry_after
from semblance.types import (
    Claims,
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
_OK = frozenset({200})
_TOO_SLOW = "too_slow"
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}  # made on first use


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the service.

    Attributes:
        path: of the route.
        body: JSON to post; a GET without it.
        places: position of each item of the body in the client's input, for errors that name an item.
        items: the field that holds these items.
        fine: statuses that are not errors.
    """

    path: str
    body: bytes | None = None
    places: Sequence[int] = ()
    items: str = ""
    fine: frozenset[int] = _OK

    @property
    def method(self) -> str:
        """The HTTP method of the request."""
        return "GET" if self.body is None else "POST"

    def parts(self, most: int) -> "list[Call]":
        """The same in requests of `most` items each."""
        content = json.loads(self.body or b"")
        given = content[self.items]
        return [
            replace(self, body=_encode({**content, self.items: given[i : i + most]}), places=self.places[i : i + most])
            for i in range(0, len(given), most)
        ]


Answer = bytes | RequestFailed  # the latter where the service says how many items it would answer in time
Steps = Generator[list[Call], list[Answer], T]
ScoredTask = (
    Literal["similarity", "paraphrase", "relevance"] | None
)  # of pairs; None: the service's default, similarity
Role = Literal["query", "passage"] | None  # of texts to embed, for models with prompts; None: neither


def read(call: Call, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The body of an answer; or the error, if fewer items would be answered.

    Raises:
        RequestFailed: the status is not in `call.fine`.
    """
    if status in call.fine:
        return body
    error = request_failed(status, body, headers.get("x-request-id"), retry_after(headers))
    if error.code == _TOO_SLOW and 0 < (error.limit or 0) < len(call.places):
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
        parts = yield from self._ask_in_parts("/similarity", "pairs", items, model, Similarities, {"task": task})
        return replace(parts[0], results=_results(parts))

    def entailment(self, pairs: Iterable[tuple[str, str]], *, model: str | None = None) -> Steps[Entailments]:
        """Label pairs of premise and hypothesis; any number of them."""
        items = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in _pairs(pairs)]
        parts = yield from self._ask_in_parts("/entailment", "pairs", items, model, Entailments)
        return replace(parts[0], results=_results(parts))

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
        parts = yield from self._ask_in_parts(
            *("/claims", "claims", _texts("claims", claims), model, Claims), {"documents": given, "encoder": encoder}
        )
        return replace(parts[0], results=_results(parts))

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
        parts = yield from self._ask_in_parts(
            *("/classify", "text", _texts("texts", texts), model, Labels),
            {"labels": given, "template": template, "multi_label": multi_label or None},
            limit="max_sentences" if given is None else "max_pairs",
            each=len(given or ()),
        )
        return replace(parts[0], results=_results(parts))

    def embed(self, sentences: Iterable[str], *, model: str | None = None, role: Role = None) -> Steps[Embeddings]:
        """Embed sentences, any number of them; `role`: as queries or passages, with the model's prompt for it."""
        given = _texts("sentences", sentences)
        parts = yield from self._ask_in_parts("/embed", "sentences", given, model, EmbedResponse, {"role": role})
        hints = [hint for part in parts for hint in part.language or [None] * len(part.truncated)]
        return Embeddings(
            parts[0].model,
            parts[0].dim,
            np.concatenate([np.asarray(part.embeddings, dtype=np.float32) for part in parts]),
            [truncated for part in parts for truncated in part.truncated],
            hints if any(hints) else None,
        )

    def _ask_in_parts(
        self,
        path: str,
        name: str,
        items: Sequence[Any],
        model: str | None,
        kind: type[T],
        more: Mapping[str, Any] | None = None,
        *,
        limit: str | None = None,
        each: int = 1,
    ) -> Steps[list[T]]:
        fixed = {**(more or {}), "model": model}
        calls = yield from self._split(path, name, items, fixed, limit, each)
        return [_parse(kind, answer) for _, answer in (yield from _answers(calls))]

    def explain(self, a: str, b: str, *, model: str | None = None) -> Steps[Explanation]:
        """Explain the score of two sentences, by token."""
        (answer,) = yield [Call("/explain", _encode({"a": _text("a", a), "b": _text("b", b), "model": model}))]
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
        second: dict[str, Any] = {"rerank_model": rerank_model, "rerank_top": rerank_top}
        least = {"min_score": min_score, "min_confidence": min_confidence}
        calls = yield from self._split("/rank", "candidates", given, {**fixed, **second, **least})
        if len(calls) == 1:
            (answer,) = yield calls
            if isinstance(answer, bytes):
                return _parse(Ranking, answer)
        if min_confidence is not None:
            raise InvalidArgument("min_confidence: there is no confidence of candidates that need several requests")
        merged = yield from self._in_parts(given, fixed, rerank_model, rerank_top)
        if min_score is not None and merged.results and merged.results[0].score < min_score:
            return replace(merged, results=[], answered=False)
        return merged

    def answer(self, query: str, faq: FAQ) -> Steps[Reply]:
        """Answer a question from an FAQ, or say that it has no answer.

        Args:
            query: the question.
            faq: what `semblance choose --faq` wrote (`FAQ.load`).
        """
        (found,) = yield [Call("/rank", _encode({"query": _text("query", query), **faq.body()}))]
        ranking = _parse(Ranking, found)
        entry = faq.entries[ranking.results[0].index] if ranking.results else None
        return Reply(entry, ranking.confidence, ranking)

    def _in_parts(
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
            language=coarse.language or fine.language,
            rerank_model=fine.model,
            rerank_scale=fine.scale,
            rerank_truncated=fine.truncated,
        )

    def _merged(self, given: Sequence[str], places: Sequence[int], fixed: Mapping[str, Any]) -> Steps[Ranking]:
        """Order the candidates at the positions `places` by one model, in as many requests as needed."""
        calls = yield from self._split("/rank", "candidates", [given[i] for i in places], fixed)
        answers = yield from _answers(calls)
        parts = [_parse(Ranking, answer) for _, answer in answers]
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
            confidence=None,
        )

    def _split(
        self,
        path: str,
        name: str,
        items: Sequence[Any],
        fixed: Mapping[str, Any],
        limit: str | None = None,
        each: int = 1,
    ) -> Steps[list[Call]]:
        """The requests that carry all items in the field `name`, within the limits `max_<name>` and `max_body_bytes`.

        A single item needs no limits, and so no `GET /models` before. `limit` is another limit, of which each item
        takes up `each`.
        """

        def encode(part: Sequence[Any]) -> bytes:
            return _encode({name: part, **fixed})

        if len(items) <= 1:
            return [Call(path, encode(items), range(len(items)), name)]
        limits = (yield from self._served_there()).limits
        most: int = max(1, getattr(limits, limit or f"max_{name}") // max(1, each))
        size = min(most, self._max_items or len(items))
        return [
            Call(path, body, range(start, stop), name)
            for i in range(0, len(items), size)
            for start, stop, body in _fitting(items, i, min(i + size, len(items)), limits.max_body_bytes, encode)
        ]

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
        if isinstance(answer, RequestFailed) and answer.field == call.items and answer.limit:
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


def _results(parts: Sequence[Any]) -> list[Any]:
    return [result for part in parts for result in part.results]


def _fitting(
    items: Sequence[Any], start: int, stop: int, room: int, encode: Callable[[Sequence[Any]], bytes]
) -> Iterator[tuple[int, int, bytes]]:
    """Bodies of at most `room` bytes, halved until they fit; a single item is sent whatever its size."""
    body = encode(items[start:stop])
    if len(body) <= room or stop - start == 1:
        yield start, stop, body
        return
    middle = (start + stop) // 2
    yield from _fitting(items, start, middle, room, encode)
    yield from _fitting(items, middle, stop, room, encode)


def _encode(body: Mapping[str, Any]) -> bytes:
    given = {name: value for name, value in body.items() if value is not None}
    try:
        return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate: sent escaped, so that the service's error names its field
        return json.dumps(given, separators=(",", ":")).encode()


def _parse(kind: type[T], answer: Answer) -> T:
    if isinstance(answer, RequestFailed):
        raise answer
    adapter = _ADAPTERS.get(kind) or _ADAPTERS.setdefault(kind, TypeAdapter(kind))
    try:
        parsed: T = adapter.validate_json(answer)
        return parsed
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"])) or "the body"
        raise UnexpectedAnswer(f"not an answer of this service: {where}: {problem['msg']}") from None
