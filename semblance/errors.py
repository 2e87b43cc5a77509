"""The exceptions of this package.

SemblanceError
├── MissingExtra             a package is not installed; also an ImportError
├── InvalidArgument          a method of a client cannot send what it was given; also a ValueError
├── CannotStart              the service in this process: a setting or a model is invalid
├── BatchError               a batch cannot start or continue: its files, columns or settings
├── NoAnswer                 no connection, or it broke
│   └── TimedOut             no answer in time
├── UnexpectedAnswer         the answer is not of this service: a proxy's page, another program
└── RequestFailed            the service refused or failed: status, code, message, field, limit, request_id
    ├── Unauthorized         401
    ├── NotFound             404  no such model, no such route
    ├── TooLarge             413
    ├── InvalidRequest       422
    ├── Overloaded           429
    └── ServiceFailed        500 and above
"""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

_LONGEST_INDEX = 9  # digits of an item's number in a field
USAGE = 2  # the exit code for wrong options or files, or a package that is not installed
INTERRUPTED = 130  # as shells say it
NO_SERVICE = 3  # where it does not answer, or does not start in this process


class SemblanceError(Exception):
    """Base class; its text is one line.

    Attributes:
        exit_code: of the command line, for an error of this kind.
    """

    exit_code = 1


class MissingExtra(SemblanceError, ImportError):
    """A package of an extra is not installed."""

    exit_code = USAGE

    def __init__(self, what: str, package: str, extra: str, command: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: {command}")
        self.extra = extra


class InvalidArgument(SemblanceError, ValueError):
    """An argument of a client is not what its methods take."""

    exit_code = USAGE


class CannotStart(SemblanceError):
    """The service in this process does not start."""

    exit_code = NO_SERVICE


class BatchError(SemblanceError):
    """A batch cannot start or continue."""

    exit_code = USAGE


class NoAnswer(SemblanceError):
    """No connection, or it broke."""

    exit_code = NO_SERVICE


class TimedOut(NoAnswer):
    """No answer in time."""


class UnexpectedAnswer(SemblanceError):
    """The answer is not of this service."""


class RequestFailed(SemblanceError):
    """The service refused a request, or failed at it.

    Attributes:
        status: of HTTP.
        code: the service's word for it, such as `empty_text`; `http_502` where a proxy answered instead.
        message: the service's explanation.
        field: where in the request, such as `pairs.3.a`, counted over all that was given to the client.
        limit: the number that was exceeded.
        request_id: the id of the request in the service's log.
        retry_after: seconds to wait before a retry, as the service asked.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        limit: float | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.limit = limit
        self.request_id = request_id
        self.retry_after = retry_after
        where = f"{field}: " if field and not message.startswith(f"{field}:") else ""
        more = f"{code}, request {request_id}" if request_id else code
        super().__init__(" ".join(f"{where}{message} ({more})".split()))

    @property
    def index(self) -> int | None:
        """The index of the item that the field is in: 3 for `pairs.3.a`."""
        part = (self.field or "").split(".")[1:2]
        return int(part[0]) if part and part[0].isdecimal() and len(part[0]) <= _LONGEST_INDEX else None

    def about(self, field: str | None) -> "RequestFailed":
        """The same error with another name for its field."""
        if field == self.field:
            return self
        message = self.message
        if field is not None and message.startswith(f"{self.field}:"):
            message = field + message.removeprefix(str(self.field))
        same: dict[str, Any] = {"limit": self.limit, "request_id": self.request_id, "retry_after": self.retry_after}
        return type(self)(self.status, self.code, message, field=field, **same)

    def at(self, places: Sequence[int], items: str) -> "RequestFailed":
        """The same error with its item renumbered: `pairs.3.a` becomes `pairs.259.a` where `places[3]` is 259.

        `items` is the field that holds what was renumbered, such as `pairs`.
        """
        if self.field is None or self.index is None or self.index >= len(places):
            return self
        name, _, *rest = self.field.split(".")
        if name != items:
            return self
        return self.about(".".join([name, str(places[self.index]), *rest]))


class Unauthorized(RequestFailed):
    """The API key is missing or wrong."""


class NotFound(RequestFailed):
    """No such model, or no such route."""


class TooLarge(RequestFailed):
    """A body, a list or a text is over its limit."""


class InvalidRequest(RequestFailed):
    """A field is invalid, a text is empty, or the model does not have the task."""


class Overloaded(RequestFailed):
    """The service is overloaded."""


class ServiceFailed(RequestFailed):
    """The service, or a proxy in front of it, failed."""


_CLASSES: Mapping[int, type[RequestFailed]] = {
    401: Unauthorized,
    404: NotFound,
    413: TooLarge,
    422: InvalidRequest,
    429: Overloaded,
}


def request_failed(status: int, body: bytes, request_id: str | None, retry_after: float | None) -> RequestFailed:
    """The error for an answer that is none of the expected ones; `body` may come from another program."""
    kind = ServiceFailed if status >= 500 else _CLASSES.get(status, RequestFailed)
    try:
        detail: dict[str, Any] = json.loads(body)["error"]
        field, limit = detail.get("field"), detail.get("limit")
        return kind(
            status,
            str(detail["code"]),
            str(detail["message"]),
            field=field if isinstance(field, str) else None,
            limit=limit if isinstance(limit, int | float) else None,
            request_id=detail.get("request_id") or request_id,
            retry_after=retry_after,
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        known = status in {known.value for known in HTTPStatus}
        phrase = HTTPStatus(status).phrase if known else "no such status is known"
        return kind(status, f"http_{status}", phrase, request_id=request_id, retry_after=retry_after)
