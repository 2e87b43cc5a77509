"""How a family of clients is told that a request failed: with its own statuses, in its own body."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from service.errors import RequestError, TooLarge


class Words(NamedTuple):
    """An error as it leaves: a status, and JSON."""

    status: int
    body: bytes


Wording = Callable[[RequestError, str], Words]  # the error, the request's id


def own_words(error: RequestError, request_id: str) -> Words:
    """As our own routes say it."""
    return Words(error.status, error.body(request_id))


@dataclass(frozen=True)
class Family:
    """One family's errors.

    Attributes:
        name: of the family, for the documentation.
        body: (error, status, request id) -> the body's fields.
        shape: the type of that body, for the documentation.
        statuses: where they are not ours; of an error's classes the most specific one counts.
    """

    name: str
    body: Callable[[RequestError, int, str], Mapping[str, object]]
    shape: type
    statuses: Mapping[type[RequestError], int]

    def words(self, error: RequestError, request_id: str) -> Words:
        """The error as this family's clients read it."""
        status = self.status(error)
        return Words(status, json.dumps(self.body(error, status, request_id)).encode())

    def status(self, error: RequestError) -> int:
        """The family's status for an error."""
        if isinstance(error, TooLarge) and error.field is None:  # the body as a whole: 413 to everyone
            return error.status
        return next((self.statuses[kind] for kind in type(error).__mro__ if kind in self.statuses), error.status)

    @property
    def responses(self) -> dict[int | str, dict[str, Any]]:
        """What the documentation says of errors on any of its routes."""
        return {"default": {"model": self.shape, "description": f"An error, as {self.name} says it"}}


def told(error: RequestError) -> str:
    """The message, with the place in the request, for bodies that have no field for the place."""
    if error.field is None or error.field in error.message:
        return error.message
    return f"{error.field}: {error.message}"
