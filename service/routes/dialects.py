"""The errors that clients read: a `Dialect` for each group of them, chosen by the beginning of the path alone."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.errors import (
    EmptyText,
    InferenceFailed,
    InvalidRequest,
    Overloaded,
    RateLimited,
    RequestError,
    TookTooLong,
    TooLarge,
    TooSlow,
    Unauthorized,
    UnknownModel,
    UnsupportedField,
)
from service.schemas import ErrorResponse


class ErrorAnswer(NamedTuple):
    """An error as it is sent: a status, and JSON."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Dialect:
    """The form of the errors that one group of clients reads.

    Attributes:
        name: of the group, for the documentation.
        body: (error, status, request id) -> the fields of the body.
        shape: the type of that body, for the documentation.
        statuses: that differ from ours; the most specific class of an error counts.
    """

    name: str
    body: Callable[[RequestError, int, str], Mapping[str, object]]
    shape: type
    statuses: Mapping[type[RequestError], int]

    def answer(self, error: RequestError, request_id: str) -> ErrorAnswer:
        """The error as these clients read it."""
        status = self._status(error)
        return ErrorAnswer(status, json.dumps(self.body(error, status, request_id)).encode())

    def _status(self, error: RequestError) -> int:
        if isinstance(error, TooSlow) or (isinstance(error, TooLarge) and error.field is None):  # the whole: always 413
            return error.status
        return next((self.statuses[kind] for kind in type(error).__mro__ if kind in self.statuses), error.status)

    @property
    def responses(self) -> dict[int | str, dict[str, Any]]:
        """The errors of its routes, for the documentation."""
        return {"default": {"model": self.shape, "description": f"An error, as {self.name} says it"}}


class OpenAIErrorDetail(TypedDict):
    """What went wrong, as OpenAI's clients read it."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: Annotated[str | None, Field(description="where in the request")]
    code: str


class OpenAIError(TypedDict):
    """The body of an error in OpenAI's form."""

    error: OpenAIErrorDetail


class CohereError(TypedDict):
    """The body of an error in Cohere's form, with the field that clients of Jina read."""

    id: str
    message: str
    detail: str


class TeiError(TypedDict):
    """The body of an error in TEI's form."""

    error: str
    error_type: Literal["Validation", "Empty", "Overloaded", "Backend", "Unhealthy", "Unauthorized"]


_OPENAI_CODES: dict[type[RequestError], str] = {
    Unauthorized: "invalid_api_key",
    UnknownModel: "model_not_found",
    Overloaded: "rate_limit_exceeded",
    RateLimited: "rate_limit_exceeded",
}
_TEI_TYPES: dict[type[RequestError], str] = {
    EmptyText: "Empty",
    Overloaded: "Overloaded",
    RateLimited: "Overloaded",
    TookTooLong: "Unhealthy",
    Unauthorized: "Unauthorized",
}


def _message(error: RequestError) -> str:
    """The message with the field, for bodies that have no place for the field."""
    if error.field is None or error.field in error.message:
        return error.message
    return f"{error.field}: {error.message}"


def _own_body(error: RequestError, _: int, request_id: str) -> Mapping[str, object]:
    return error.content(request_id)


def _openai_body(error: RequestError, status: int, _: str) -> Mapping[str, object]:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    code = _OPENAI_CODES.get(type(error), error.code)
    return {"error": {"message": _message(error), "type": kind, "param": error.field, "code": code}}


def _cohere_body(error: RequestError, _: int, request_id: str) -> Mapping[str, object]:
    return {"id": request_id, "message": _message(error), "detail": _message(error)}


def _tei_body(error: RequestError, status: int, _: str) -> Mapping[str, object]:
    otherwise = "Backend" if status >= 500 or isinstance(error, InferenceFailed) else "Validation"
    return {"error": _message(error), "error_type": _TEI_TYPES.get(type(error), otherwise)}


# Statuses of bad input; OpenAI and Cohere know no 413.
_BAD_INPUT: Mapping[type[RequestError], int] = {InvalidRequest: 400, TooLarge: 400, UnsupportedField: 422}
OURS = Dialect("Semblance", _own_body, ErrorResponse, {})
OPENAI = Dialect("OpenAI", _openai_body, OpenAIError, _BAD_INPUT)
COHERE = Dialect("Cohere", _cohere_body, CohereError, _BAD_INPUT)
TEI = Dialect("TEI", _tei_body, TeiError, {EmptyText: 400, InferenceFailed: 424, TooLarge: 422})
# The first beginning that fits; on the root stand the paths that most of these clients have by themselves.
_BEGINNINGS = {
    "/openai": OPENAI,
    "/cohere": COHERE,
    "/tei": TEI,
    "/v1/rerank": COHERE,
    "/v2": COHERE,
    "/v1": OPENAI,
}
PEERS = tuple(dict.fromkeys(each.name for each in _BEGINNINGS.values()))  # the other services, by name


def dialect_of(path: str) -> Dialect:
    """The dialect of whoever asks for this path."""
    return next((found for begin, found in _BEGINNINGS.items() if f"{path}/".startswith(f"{begin}/")), OURS)
