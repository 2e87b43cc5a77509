"""Everything that a client raises.

SemblanceError
├── MissingExtra             a package that is not installed; also an ImportError
├── CannotStart              the service in this process: settings or models are not as they should be
├── BatchError               a batch that cannot begin, or not go on: its files, columns or settings
├── NoAnswer                 nobody answered: no connection, or it broke off
│   └── TimedOut             no answer in time
├── UnexpectedAnswer         an answer, but not of this service: a proxy's page, another program
└── RequestFailed            the service said no: status, code, message, field, limit, request_id
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


class SemblanceError(Exception):
    """Root of the tree; its text is one line."""


class MissingExtra(SemblanceError, ImportError):
    """A package that is not installed.

    Args:
        what: what was asked for.
        package: what it needs.
        extra: the extra of this project that brings it.
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: pip install 'semblance[{extra}]'")
        self.extra = extra


class CannotStart(SemblanceError):
    """The service in this process does not start."""


class BatchError(SemblanceError):
    """A batch that cannot begin, or not go on."""


class NoAnswer(SemblanceError):
    """No connection, or one that broke off."""


class TimedOut(NoAnswer):
    """No answer in time."""


class UnexpectedAnswer(SemblanceError):
    """Not an answer of this service."""


class RequestFailed(SemblanceError):
    """The service refused a request, or failed at it.

    Attributes:
        status: of HTTP.
        code: the service's word for it, such as `empty_text`; `http_502` where a proxy answered instead.
        message: the service's explanation.
        field: where in the request, such as `pairs.3.a`, counted over all that was given to the client.
        limit: the number that was exceeded.
        request_id: under which the service's log says more.
        retry_after: seconds that the service asked to wait.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        limit: int | None = None,
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
        """Which item of the list the field is in: 3 for `pairs.3.a`."""
        part = (self.field or "").split(".")[1:2]
        return int(part[0]) if part and part[0].isdecimal() else None

    def at(self, places: Sequence[int]) -> "RequestFailed":
        """The same error, its field counted otherwise: `pairs.3.a` becomes `pairs.259.a` where `places[3]` is 259."""
        if self.field is None or self.index is None or self.index >= len(places):
            return self
        name, _, *rest = self.field.split(".")
        field = ".".join([name, str(places[self.index]), *rest])
        message = self.message
        if message.startswith(f"{self.field}:"):
            message = field + message.removeprefix(self.field)
        return type(self)(
            self.status,
            self.code,
            message,
            field=field,
            limit=self.limit,
            request_id=self.request_id,
            retry_after=self.retry_after,
        )


class Unauthorized(RequestFailed):
    """The API key is missing, or another one."""


class NotFound(RequestFailed):
    """No such model, or no such route."""


class TooLarge(RequestFailed):
    """A body, a list or a text over its limit."""


class InvalidRequest(RequestFailed):
    """A field does not fit, a text is empty, or the model lacks the task."""


class Overloaded(RequestFailed):
    """Too much is waiting there already."""


class ServiceFailed(RequestFailed):
    """The service, or a proxy before it, failed."""


_CLASSES: Mapping[int, type[RequestFailed]] = {
    401: Unauthorized,
    404: NotFound,
    413: TooLarge,
    422: InvalidRequest,
    429: Overloaded,
}


def request_failed(status: int, body: bytes, request_id: str | None, retry_after: float | None) -> RequestFailed:
    """The error that an answer with a status other than 200 means; `body` may be anyone's."""
    kind = ServiceFailed if status >= 500 else _CLASSES.get(status, RequestFailed)
    try:
        detail: dict[str, Any] = json.loads(body)["error"]
        return kind(
            status,
            str(detail["code"]),
            str(detail["message"]),
            field=detail.get("field"),
            limit=detail.get("limit"),
            request_id=detail.get("request_id") or request_id,
            retry_after=retry_after,
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        known = status in {known.value for known in HTTPStatus}
        phrase = HTTPStatus(status).phrase if known else "no such status is known"
        return kind(status, f"http_{status}", phrase, request_id=request_id, retry_after=retry_after)
