"""What the service can be asked: one record for each request, which is served, described and counted as it says.

Documentation, keys, errors and counts follow from the record, so a new route is a request type, a call and a record in
one file. FastAPI's router holds a route for each path and method, made of these records (`routes/route.py`), but
its own handler is not used: it validates answers that we made, and costs five times as much. Keys and limits are plain
ASGI middleware: FastAPI's dependencies run after the body is read.

A `RequestState` is what is known of one request on its way, and a `Dialect` the form of the errors that its sender
reads.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import QueryParams
from starlette.types import Scope

from service.engine.context import RequestContext
from service.errors import InvalidRequest, RequestError, TooLarge, TooSlow
from service.observe.metrics import Timings
from service.observe.telemetry import NO_MODEL
from service.routes.body import BodyLimits, BodyParser

Responses = Mapping[int | str, dict[str, Any]]  # as FastAPI documents them
STATE = "semblance.state"  # in the scope
JSON = b"application/json"
Kind = type | tuple[type, ...]


class ErrorAnswer(NamedTuple):
    """An error as it is sent: a status, and JSON."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Dialect:
    """The form of the errors that one group of clients reads.

    Attributes:
        name: of the dialect, for the documentation.
        body: (error, status, request id) -> the body's fields.
        shape: the type of that body, for the documentation.
        statuses: that differ from ours; the most specific class of an error counts.
        described: the descriptions of its errors by status; empty: one for all.
        strict: whether a field that a request does not know is an error. Every one of them is collected, so a body may
            have few.
    """

    name: str
    body: Callable[[RequestError, int, str], Mapping[str, object]]
    shape: type
    statuses: Mapping[type[RequestError], int]
    described: Mapping[int, str] = field(default_factory=dict)
    strict: bool = False

    def error(self, error: RequestError, request_id: str) -> ErrorAnswer:
        """The error in this dialect's format."""
        status = self.status(error)
        return ErrorAnswer(status, json.dumps(self.body(error, status, request_id)).encode())

    def status(self, error: RequestError) -> int:
        """The dialect's status for an error."""
        if isinstance(error, TooSlow) or (isinstance(error, TooLarge) and error.field is None):  # the whole: always 413
            return error.status
        return next((self.statuses[kind] for kind in type(error).__mro__ if kind in self.statuses), error.status)

    @property
    def responses(self) -> Responses:
        """The errors of its routes, for the documentation."""
        if self.described:
            return {status: {"model": self.shape, "description": says} for status, says in self.described.items()}
        return {"default": {"model": self.shape, "description": f"An error, as {self.name} says it"}}


def full_message(error: RequestError) -> str:
    """The message with the field, for bodies that have no place for the field."""
    if error.field is None or error.field in error.message:
        return error.message
    return f"{error.field}: {error.message}"


class RequestState:
    """One request and its answer."""

    __slots__ = (
        "arrived", "began", "caller", "context", "dialect", "headers", "id", "model", "received", "route", "started",
        "status",
    )  # fmt: skip

    def __init__(self, identity: str, began: float, received: Mapping[bytes, bytes]) -> None:
        """Begin, with the time of `perf_counter` and the request's headers."""
        self.id = identity
        self.began = began
        self.received = received
        self.caller: str | None = None  # name of the API key
        self.route: str | None = None  # path of the route that answers, once it is found
        self.dialect: Dialect | None = None  # whose errors the caller understands, once it is known
        self.model = NO_MODEL  # that answers
        self.context: RequestContext | None = None  # of a request that asks a model
        self.arrived = False  # whether the whole body was read
        self.started = False  # whether the answer's head was sent
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []  # of every answer

    @property
    def timings(self) -> Timings | None:
        """Its seconds by phase; None unless it asks a model."""
        return None if self.context is None else self.context.timings


def state_of(scope: Scope) -> RequestState:
    """The state of a request."""
    return cast(RequestState, scope[STATE])


class RequestView(NamedTuple):
    """One request, as its operation sees it."""

    scope: Scope
    body: bytes

    @property
    def accept(self) -> str:
        """The header of this name."""
        return state_of(self.scope).received.get(b"accept", b"").decode("latin-1")


class OperationResponse(NamedTuple):
    """An answer with more to say than 200 and JSON."""

    content: Any  # bytes are sent as they are, all else as JSON
    status: int = 200
    media: bytes = JSON
    model: str = NO_MODEL  # that answered
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Operation:
    """One kind of request. This class takes JSON, and asks a model."""

    method: Literal["GET", "POST"] = "POST"
    scores: bool = True  # whether it asks a model: it has a time limit, and is refused when there is too much to do
    open: bool = False  # whether anybody may ask, without a key and as often as they like

    def __init__(
        self,
        path: str,
        call: Callable[..., Awaitable[Any]],
        dialect: Dialect,
        summary: str,
        *,
        fields: Mapping[str, Kind] | None = None,
        responses: Responses | None = None,
    ) -> None:
        """Create the record of one kind of request.

        Args:
            path: of the route.
            call: a `request` and its `context` -> the name of the model that answered, and the answer, of dicts, lists,
                tuples, texts and numbers; its annotations are the types of request and answer.
            dialect: whose clients send it, and read its errors.
            summary: for the documentation.
            fields: on a path that several operations share, the fields (or paths of nested ones) by which a body is
                of this operation, with the types of their values; one without any takes the bodies of no other.
            responses: answers besides 200 and errors.
        """
        self.path = path
        self.call = call
        self.dialect = dialect
        self.summary = summary
        self.name = getattr(call, "__name__", type(call).__name__)
        self.fields = fields or {}
        self.key = next(iter(self.fields), "")
        self.marker = f'"{self.key.rpartition(".")[2]}"'.encode() if self.key else b""
        self._responses = responses or {}
        hints = get_type_hints(call, include_extras=True)
        self.answer_type = self._answer_of(hints.pop("return"))
        self._parameters = {
            name: parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, parameter in inspect.signature(call).parameters.items()
        }
        self.request = hints.get("request")

    def _answer_of(self, hint: Any) -> Any:
        return get_args(hint)[1]

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What it takes besides a body, of the path and the query."""
        return {}

    @property
    def responses(self) -> Responses:
        """Answers besides 200, for the documentation."""
        return {**self.dialect.responses, **self._responses}

    @cached_property
    def _reader(self) -> BodyParser:
        return BodyParser(self.request)

    def is_meant_by(self, content: object) -> bool:
        """Whether a parsed body is of this operation."""
        return all(_has(content, path, kind) for path, kind in self.fields.items())

    def read(self, asked: RequestView, most: BodyLimits) -> Any:
        """The request in a body, which may have `most` values and keys; also called in a thread.

        Raises:
            RequestError: it does not fit.
        """
        return self._reader(asked.body, most)

    async def answer(self, asked: RequestView, request: Any) -> OperationResponse:
        """Answer what `read` returned.

        Raises:
            RequestError: of any kind.
        """
        model, found = await self.call(request, state_of(asked.scope).context)
        return OperationResponse(found, model=model)


class ReadOperation(Operation):
    """A request without a body, which asks no model; the call's parameters are those of the path and the query.

    One that is called `asked` gets the whole request. The call returns the answer, or a `OperationResponse`.
    """

    scores = False

    def __init__(
        self,
        path: str,
        call: Callable[..., Awaitable[Any]],
        dialect: Dialect,
        summary: str,
        *,
        method: Literal["GET", "POST"] = "GET",
        answer: Any = None,
        open: bool = False,
        responses: Responses | None = None,
    ) -> None:
        """Create the record of one kind of request.

        Args:
            path: of the route.
            call: see above.
            dialect: who reads its errors.
            summary: for the documentation.
            method: of the request.
            answer: type of the answer, where the call returns a `OperationResponse`; None: no JSON.
            open: whether anybody may ask.
            responses: answers besides 200 and errors.
        """
        self._given = answer
        super().__init__(path, call, dialect, summary, responses=responses)
        self.method = method
        self.open = open
        self._typed = {name: TypeAdapter[Any](each.annotation) for name, each in self.parameters.items()}

    def _answer_of(self, hint: Any) -> Any:
        return self._given if hint is OperationResponse else hint

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What it takes of the path and the query."""
        return {name: parameter for name, parameter in self._parameters.items() if name != "asked"}

    @property
    def responses(self) -> Responses:
        """Answers besides 200; who need not show a key is not refused for want of one, or for asking often."""
        never = ((401, 429) if self.open else ()) + (() if self.parameters else (422,))
        errors = {status: says for status, says in self.dialect.responses.items() if status not in never}
        return {**errors, **self._responses}

    def read(self, asked: RequestView, most: BodyLimits) -> dict[str, Any]:
        """The values of the call's parameters.

        Raises:
            InvalidRequest: one is not of its type.
        """
        query = QueryParams(asked.scope["query_string"])
        given: dict[str, Any] = {**query, **asked.scope["path_params"], "asked": asked}
        found = {name: given[name] for name in self._parameters if name in given}
        for name, adapter in self._typed.items():
            if name in found:
                try:
                    found[name] = adapter.validate_python(found[name])
                except ValidationError as error:
                    raise InvalidRequest(f"{name}: {error.errors()[0]['msg']}", field=name) from None
        return found

    async def answer(self, asked: RequestView, request: Any) -> OperationResponse:
        """Answer by what `read` found."""
        found = await self.call(**request)
        return found if isinstance(found, OperationResponse) else OperationResponse(found)


def _has(content: object, path: str, kind: Kind) -> bool:
    """Whether a value of this kind is there: in a field, or in a field inside one (`parameters.top_k`)."""
    for name in path.split("."):
        if not isinstance(content, dict) or name not in content:
            return False
        content = content[name]
    return isinstance(content, kind)
