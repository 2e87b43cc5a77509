"""The format of errors for each family of clients: statuses and bodies."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from service.errors import RequestError, TooLarge, TooSlow

Responses = Mapping[int | str, dict[str, Any]]  # as FastAPI documents them


class ErrorAnswer(NamedTuple):
    """An error as it is sent: a status, and JSON."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Dialect:
    """The form of the errors that one group of clients reads.

    Attributes:
        name: of the family, for the documentation.
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
        """The error in this family's format."""
        status = self.status(error)
        return ErrorAnswer(status, json.dumps(self.body(error, status, request_id)).encode())

    def status(self, error: RequestError) -> int:
        """The family's status for an error."""
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
