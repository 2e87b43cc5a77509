"""What to send and what the answers mean, without sending anything: shared by the blocking and the async client.

Each question is a generator. It yields the requests to make, which do not depend on each other, gets their answers
in the same order, and returns what they say together. What is too large for one request is split by the limits that
`GET /models` tells, asked once by each client.
"""

import heapq
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from semblance.errors import InvalidRequest, UnexpectedAnswer, request_failed
from semblance.retries import retry_after
from semblance.types import (
    Embeddings,
    Entailments,
    Explanation,
    LimitsInfo,
    Models,
    Ranking,
    RankResult,
    RankTruncated,
    Readiness,
    Similarities,
)

T = TypeVar("T")
_OK = frozenset({200})
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}  # made on first use


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        path: of the route.
        body: JSON to post; a GET without it.
        places: where the items of the body's list stand in what the client was given, for errors that name one.
        fine: statuses whose body is an answer.
    """

    path: str
    body: bytes | None = None
    places: Sequence[int] = ()
    fine: frozenset[int] = _OK

    @property
    def method(self) -> str:
        """Of HTTP."""
        return "GET" if self.body is None else "POST"


Steps = Generator[list[Call], list[bytes], T]


def read(call: Call, status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """The body of an answer.

    Raises:
        RequestFailed: the status is not one of an answer.
    """
    if status in call.fine:
        return body
    raise request_failed(status, body, headers.get("x-request-id"), retry_after(headers)).at(call.places)


class Questions:
    """The questions to one service, and what it said of itself."""

    def __init__(self, max_items: int | None = None) -> None:
        """Begin knowing nothing of the service.

        Args:
            max_items: how many pairs, candidates or sentences to send in one request, if fewer than it allows.
        """
        self._max_items = max_items
        self._served: Models | None = None

    def similarity(
        self, pairs: Iterable[tuple[str, str]], model: str | None, *, tell_cached: bool = False
    ) -> Steps[Similarities]:
        """Score pairs."""
        items = [{"a": a, "b": b} for a, b in pairs]
        fixed = {"model": model, "tell_cached": tell_cached or None}
        calls = yield from self._split("/similarity", "pairs", items, fixed, lambda limits: limits.max_pairs)
        parts = [_parse(Similarities, answer) for answer in (yield calls)]
        results = [result for part in parts for result in part.results]
        return Similarities(parts[0].model, results, model_version=_version(parts))

    def entailment(
        self, pairs: Iterable[tuple[str, str]], model: str | None, *, tell_cached: bool = False
    ) -> Steps[Entailments]:
        """Label pairs of premise and hypothesis."""
        items = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in pairs]
        fixed = {"model": model, "tell_cached": tell_cached or None}
        calls = yield from self._split("/entailment", "pairs", items, fixed, lambda limits: limits.max_pairs)
        parts = [_parse(Entailments, answer) for answer in (yield calls)]
        results = [result for part in parts for result in part.results]
        return Entailments(parts[0].model, results, model_version=_version(parts))

    def embed(self, sentences: Iterable[str], model: str | None, *, tell_cached: bool = False) -> Steps[Embeddings]:
        """Embed sentences."""
        fixed = {"model": model, "tell_cached": tell_cached or None}
        calls = yield from self._split(
            "/embed", "sentences", list(sentences), fixed, lambda limits: limits.max_sentences
        )
        parts = [_parse(_Embeddings, answer) for answer in (yield calls)]
        return Embeddings(
            parts[0].model,
            parts[0].dim,
            np.concatenate([np.asarray(part.embeddings, dtype=np.float32) for part in parts]),
            [truncated for part in parts for truncated in part.truncated],
            [cached for part in parts for cached in part.cached or ()] if tell_cached else None,
            model_version=_version(parts),
        )

    def explain(self, a: str, b: str, model: str | None) -> Steps[Explanation]:
        """What made the score of a pair."""
        (answer,) = yield [Call("/explain", _encode({"a": a, "b": b, "model": model}))]
        return _parse(Explanation, answer)

    def models(self) -> Steps[Models]:
        """What is served; asked anew each time."""
        (answer,) = yield [Call("/models")]
        self._served = _parse(Models, answer)
        return self._served

    def health(self) -> Steps[Readiness]:
        """Whether requests should be sent there."""
        (answer,) = yield [Call("/health/ready", fine=frozenset({200, 503}))]
        return _parse(Readiness, answer)

    def rank(
        self,
        query: str,
        candidates: Iterable[str],
        *,
        top_k: int | None,
        model: str | None,
        rerank_model: str | None,
        rerank_top: int | None,
        tell_cached: bool = False,
    ) -> Steps[Ranking]:
        """Order candidates.

        More of them than one request may hold are ordered part by part and merged by their scores. The second stage
        then orders the best of all parts.
        """
        given = list(candidates)
        fixed = {"query": query, "model": model, "top_k": top_k, "tell_cached": tell_cached or None}
        second = {"rerank_model": rerank_model, "rerank_top": rerank_top}
        calls = yield from self._rank_calls(given, fixed | second)
        if len(calls) == 1:
            (answer,) = yield calls
            return _parse(Ranking, answer)
        if rerank_model is None and rerank_top is None:
            return (yield from self._merged(given, range(len(given)), fixed))
        served = yield from self._served_there()
        rerank_model, rerank_top = rerank_model or served.rerank.default_model, rerank_top or served.rerank.default_top
        if rerank_model is None:
            message = "there is no default model for the second stage; name one"
            raise InvalidRequest(422, "invalid_request", message, field="rerank_model")
        kept = None if top_k is None else max(top_k, rerank_top)
        coarse = yield from self._merged(given, range(len(given)), fixed | {"top_k": kept})
        best = [result.index for result in coarse.results[:rerank_top]]
        fine = yield from self._merged(given, best, fixed | {"model": rerank_model, "top_k": None})
        results = [replace(result, stage=2) for result in fine.results]
        results += [replace(result, stage=1) for result in coarse.results[rerank_top:]]
        return Ranking(
            coarse.model,
            results[:top_k],
            coarse.truncated,
            fine.model,
            fine.truncated,
            model_version=coarse.model_version,
            rerank_model_version=fine.model_version,
        )

    def _merged(self, given: Sequence[str], places: Sequence[int], fixed: Mapping[str, Any]) -> Steps[Ranking]:
        """Order the candidates that stand at `places`, in as many requests as it takes, by one model."""
        calls = yield from self._rank_calls([given[i] for i in places], fixed)
        parts = [_parse(Ranking, answer) for answer in (yield calls)]
        ordered: list[list[RankResult]] = []
        truncated: list[int] = []
        for call, part in zip(calls, parts, strict=True):  # the places of a call are positions in our own `places`
            at = [places[i] for i in call.places]
            ordered.append([replace(result, index=at[result.index]) for result in part.results])
            truncated += [at[i] for i in part.truncated.candidates]
        merged = heapq.merge(*ordered, key=lambda result: -result.score)  # of equal ones the earlier part first
        return Ranking(
            parts[0].model,
            list(islice(merged, fixed["top_k"])),
            RankTruncated(any(part.truncated.query for part in parts), sorted(truncated)),
            model_version=_version(parts),
        )

    def _rank_calls(self, candidates: list[str], fixed: Mapping[str, Any]) -> Steps[list[Call]]:
        return self._split("/rank", "candidates", candidates, fixed, lambda limits: limits.max_candidates)

    def _split(
        self,
        path: str,
        name: str,
        items: Sequence[Any],
        fixed: Mapping[str, Any],
        most: Callable[[LimitsInfo], int],
    ) -> Steps[list[Call]]:
        """The requests that carry all items; of one item there is nothing to split, and nothing to ask before."""

        def encode(part: Sequence[Any]) -> bytes:
            return _encode({name: part, **fixed})

        if len(items) <= 1:
            return [Call(path, encode(items), range(len(items)))]
        limits = (yield from self._served_there()).limits
        size = min(most(limits), self._max_items or len(items))
        return [
            Call(path, body, range(start, stop))
            for i in range(0, len(items), size)
            for start, stop, body in _fitting(items, i, min(i + size, len(items)), limits.max_body_bytes, encode)
        ]

    def _served_there(self) -> Steps[Models]:
        return self._served or (yield from self.models())


class _Part(Protocol):
    @property
    def model_version(self) -> int | None: ...


def _version(parts: Sequence[_Part]) -> int | None:
    """The version that gave all parts; None where a reload of the service fell between them."""
    versions = {part.model_version for part in parts}
    return versions.pop() if len(versions) == 1 else None


@dataclass(frozen=True, slots=True)
class _Embeddings:
    """As JSON has them."""

    model: str
    dim: int
    embeddings: list[list[float]]
    truncated: list[bool]
    cached: list[bool] | None = None
    model_version: int | None = None


def _fitting(
    items: Sequence[Any], start: int, stop: int, room: int, encode: Callable[[Sequence[Any]], bytes]
) -> Iterator[tuple[int, int, bytes]]:
    """Bodies of at most `room` bytes, halved until they are; one item that is larger goes as it is, to be refused."""
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
    except UnicodeEncodeError:  # a lone surrogate: escaped, it arrives there and is refused by its field
        return json.dumps(given, separators=(",", ":")).encode()


def _parse(kind: type[T], answer: bytes) -> T:
    adapter = _ADAPTERS.get(kind) or _ADAPTERS.setdefault(kind, TypeAdapter(kind))
    try:
        parsed: T = adapter.validate_json(answer)
        return parsed
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"])) or "the body"
        raise UnexpectedAnswer(f"not an answer of this service: {where}: {problem['msg']}") from None
