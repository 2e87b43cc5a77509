"""One request to the service and its answer, without I/O; and what a client checks of texts before it sends them."""

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from semblance.client.retries import retry_after
from semblance.errors import InvalidArgument, RequestFailed, UnexpectedAnswer, request_failed
from semblance.types import Duplicates, EmbedResponse, Ranking

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
        ok_statuses: statuses that are not errors.
    """

    path: str
    content: Mapping[str, Any] | None = None
    places: Sequence[int] = ()
    items: str = ""
    ok_statuses: frozenset[int] = frozenset({200})

    @property
    def method(self) -> str:
        """The HTTP method of the request."""
        return "GET" if self.content is None else "POST"

    @property
    def body(self) -> bytes | None:
        """The content as JSON; made anew each time, for the bodies of all parts may be more than memory has."""
        if self.content is None:
            return None
        given = {name: value for name, value in self.content.items() if value is not None}
        return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), _as_json(name, value)) for name, value in given.items())

    def parts(self, size: int) -> "list[Call]":
        """The same in requests of at most `size` items each."""
        content = self.content or {}
        given = content[self.items]
        return [
            replace(self, content={**content, self.items: given[i : i + size]}, places=self.places[i : i + size])
            for i in range(0, len(given), size)
        ]

    def is_mostly_one(self) -> bool:
        """Whether one item is most of the body."""
        item = (self.content or {})[self.items] if len(self.places) == 1 else ""
        return 2 * len(_as_json(self.items, item)) > len(self.body or b"")

    def fitting(self, room: int) -> "list[Call]":
        """The same in requests of at most `room` bytes, halved until they fit; a single item is sent at any size."""
        if len(self.body or b"") <= room or len(self.places) == 1:
            return [self]
        return [part for half in self.parts((len(self.places) + 1) // 2) for part in half.fitting(room)]


def _as_json(name: str, value: object) -> bytes:
    """An argument as it is sent; NumPy's numbers as numbers.

    Raises:
        InvalidArgument: JSON has nothing for it.
    """
    try:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_number_of
        ).encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name}: a lone surrogate is not a character") from None
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{name}: {error}") from None


def _number_of(value: Any) -> object:
    found = value.item() if hasattr(value, "item") else None
    if isinstance(found, (int, float)):  # bool is one
        return found
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


Answer = bytes | RequestFailed  # the latter where the service says how many items it would answer in time
Steps = Generator[list[Call], list[Answer], T]


def read_answer(call: Call, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The body of an answer; or the error, if fewer items would be answered.

    Raises:
        RequestFailed: the status is not in `call.ok_statuses`.
    """
    if status in call.ok_statuses:
        return body
    error = request_failed(status, body, headers.get("x-request-id"), retry_after(headers))
    if error.code == "too_slow" and isinstance(error.limit, int) and 0 < error.limit < len(call.places):
        return error
    if error.code == "too_large" and error.field is None and call.is_mostly_one():
        error = error.about(f"{call.items}.0")
    raise error.at(call.places, call.items)


def answers_to(calls: list[Call]) -> Steps[list[tuple[Call, Answer]]]:
    """The answers to these requests, and to parts of those that would take too long; each with its request."""
    found: list[tuple[Call, Answer]] = []
    for call, answer in zip(calls, (yield calls), strict=True):
        if isinstance(answer, RequestFailed) and answer.field == call.items and isinstance(answer.limit, int):
            found += yield from answers_to(call.parts(answer.limit))
        else:
            found.append((call, answer))
    return found


def check_text(field: str, given: object) -> str:
    """The text; raises InvalidArgument if it is none."""
    if not isinstance(given, str):
        raise InvalidArgument(f"{field}: expected a text, found {_kind(given)}")
    _as_json(field, given)
    return given


def check_texts(field: str, given: object) -> list[str]:
    """A list of the texts; raises InvalidArgument if they are none, a single text, or without an order."""
    if isinstance(given, str | Mapping | set | frozenset) or not isinstance(given, Iterable):
        raise InvalidArgument(f'{field}: expected a list of texts, such as ["A dog runs."], found {_kind(given)}')
    return [check_text(f"{field}.{i}", text) for i, text in enumerate(given)]


def check_pairs(given: object) -> list[tuple[str, str]]:
    """A list of the pairs; raises InvalidArgument if they are none."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(f"pairs: expected a list of pairs of texts, found {_kind(given)}")
    pairs = [check_texts(f"pairs.{i}", pair) for i, pair in enumerate(given)]
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            raise InvalidArgument(f"pairs.{i}: expected two texts, found {len(pair)}")
    return [(a, b) for a, b in pairs]


def _kind(found: object) -> str:
    return f"the text {found[:40]!r}" if isinstance(found, str) else f"a value of type {type(found).__name__}"


def parse(kind: type[T], answer: Answer) -> T:
    """The answer as this dataclass; raises UnexpectedAnswer if it is of another program, or the error that it is."""
    if isinstance(answer, RequestFailed):
        raise answer
    try:
        parsed: T = _adapter_of(kind).validate_json(answer, strict=True)
        if any(word in answer for word in (b"NaN", b"Infinity")):  # of a text, or numbers that JSON has not
            from_json(answer, allow_inf_nan=False)
        return parsed
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"])) or "the body"
        raise _unexpected(f"{where}: {problem['msg']}") from None
    except ValueError as error:
        raise _unexpected(str(error)) from None


def _unexpected(problem: str) -> UnexpectedAnswer:
    return UnexpectedAnswer(f"not an answer of this service: {problem}")


def parse_results(kind: type[T], answer: Answer, count: int) -> T:
    """The answer about `count` items.

    Raises:
        UnexpectedAnswer: it is about fewer or more, or names others; or has embeddings of another size than it says.
    """
    parsed: Any = parse(kind, answer)
    embedded = isinstance(parsed, EmbedResponse)
    for items in (parsed.embeddings, parsed.truncated) if embedded else (parsed.results,):
        if len(items) != count:
            raise _unexpected(f"{len(items)} results for {count} items")
    if embedded and any(len(row) != parsed.dim for row in parsed.embeddings):
        raise _unexpected(f"embeddings: expected {parsed.dim} numbers in each")
    if isinstance(parsed, Duplicates):
        near = [*parsed.review, *parsed.apart]
        check_places("text", (index for pair in near for index in (pair.index_1, pair.index_2)), count)
        check_places("text", (result.cluster for result in parsed.results), count)
        check_places("text", (each.kept_apart.index for each in parsed.results if each.kept_apart), count)
    whole: T = parsed
    return whole


def parse_ranking(answer: Answer, count: int, wanted: int | None = None) -> Ranking:
    """The order of `count` candidates.

    Raises:
        UnexpectedAnswer: it names one that was not given, or one twice; or not as many as were wanted.
    """
    parsed = parse(Ranking, answer)
    found = [result.index for result in parsed.results]
    check_places("candidate", (*found, *parsed.truncated.candidates), count)
    if len(set(found)) < len(found):
        raise _unexpected("a candidate stands there twice")
    if wanted is not None and len(found) != min(count, wanted) and (found or parsed.answered):
        raise _unexpected(f"{len(found)} results, {min(count, wanted)} were asked for")
    return parsed


def check_places(what: str, places: Iterable[int], count: int) -> None:
    """Whether these are positions among `count`; raises UnexpectedAnswer."""
    for place in places:
        if not 0 <= place < count:
            raise _unexpected(f"{what} {place} of {count}")


def check_same(parts: Sequence[Any], *fields: str) -> None:
    """Whether the answers to parts of one request are of one model.

    Raises:
        UnexpectedAnswer: their models, or others of these fields, differ.
    """
    for field in ("model", *fields):
        found = list(dict.fromkeys(getattr(part, field) for part in parts))
        if len(found) > 1:
            raise _unexpected(f"parts of one request have the {field} {found[0]!r} and {found[1]!r}: name a model")
