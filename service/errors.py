"""All errors, with their statuses and codes.

ServiceError
├── StartupError             the service refuses to start
│   ├── SettingsError        a SEMBLANCE_ variable does not fit
│   ├── ModelError           no models, a broken one, or a default that is not there
│   └── ProviderError        an execution provider was asked for and is absent
└── RequestError             a request that gets no answer
    ├── NotHttp              400  not_http
    ├── NotJson              400  not_json
    ├── Unauthorized         401  unauthorized
    ├── ForeignOrigin        403  foreign_origin        a page in a browser asks for a reload
    ├── UnknownModel         404  unknown_model
    ├── HeadTimeout          408  head_timeout
    ├── BodyTimeout          408  body_timeout
    ├── TooLarge             413  too_large             a body, a text or a list over its limit
    │   └── TooSlow          413  too_slow              a list that takes longer than the time limit
    ├── UnsupportedMedia     415  unsupported_media_type
    ├── InvalidRequest       422  invalid_request       a missing, unknown or mistyped field
    │   ├── EmptyText        422  empty_text
    │   ├── UnsupportedField 422  unsupported_field     asks for what another service does and this one does not
    │   └── UnsupportedTask  422  unsupported_task
    ├── Overloaded           429  overloaded
    ├── RateLimited          429  rate_limited
    ├── HeadTooLarge         431  head_too_large
    ├── InternalError        500  internal_error
    │   └── InferenceFailed  500  inference_failed
    ├── ModelUnavailable     503  model_unavailable
    ├── ShuttingDown         503  shutting_down
    ├── TookTooLong          503  timeout
    └── HttpError            as the framework says (404 not_found, 405 method_not_allowed)

The body is `{"error": {"code", "message", "field", "limit", "request_id"}}`. `field` is a path such as `pairs.3.a`,
`limit` the number that was exceeded; null if they do not apply.
"""

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

_LONGEST_ECHO = 100  # characters of a client's text that are quoted
_LONGEST_MESSAGE = 2000  # characters, and of a field: whatever was sent
_SURE = 0.9  # of the items that should end in time, that are named: items differ, and so does the pace when they come
_FEW = 3  # names of models in a message; GET /models lists all
_CLOSE = 0.6  # of difflib's ratio: what a slip of the hand leaves, and not a name of another kind


def retry_headers(seconds: float) -> dict[str, str]:
    """Headers with the time until a retry: in whole seconds (HTTP), and in milliseconds, which some clients read."""
    return {"retry-after": str(max(1, math.ceil(seconds))), "retry-after-ms": str(math.ceil(seconds * 1000))}


class ServiceError(Exception):
    """Root of the tree."""


class StartupError(ServiceError):
    """The service refuses to start."""


class SettingsError(StartupError):
    """A `SEMBLANCE_` variable does not fit."""


class ModelError(StartupError):
    """No models, a broken one, or a default that is missing."""


class ProviderError(StartupError):
    """An execution provider is required and absent."""


class RequestError(ServiceError):
    """A request that gets no answer."""

    status: int = 500
    code: str = "internal_error"
    headers: Mapping[str, str] = {}

    def __init__(self, message: str, *, field: str | None = None, limit: int | None = None) -> None:
        super().__init__(message)
        self.message = message[:_LONGEST_MESSAGE]
        self.field = field and field[:_LONGEST_MESSAGE]
        self.limit = limit

    def content(self, request_id: str) -> Mapping[str, object]:
        """The body of our own answer."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "field": self.field,
                "limit": self.limit,
                "request_id": request_id,
            }
        }


class NotHttp(RequestError):
    """It is not an HTTP request, or one that is not allowed."""

    status, code = 400, "not_http"


class NotJson(RequestError):
    """The body is not JSON."""

    status, code = 400, "not_json"


class Unauthorized(RequestError):
    """No API key, or a wrong one."""

    status, code = 401, "unauthorized"
    headers: Mapping[str, str] = {"www-authenticate": "Bearer"}


class ForeignOrigin(RequestError):
    """A page in a browser asks for what changes the service."""

    status, code = 403, "foreign_origin"


class UnknownModel(RequestError):
    """No model of that name."""

    status, code = 404, "unknown_model"

    def __init__(self, name: str, task: str, able: Sequence[str], field: str = "model", more: str = "") -> None:
        near = get_close_matches(name[:_LONGEST_ECHO], able, _FEW, _CLOSE)
        others = f"the closest for {task}: {some(near, len(able))}" if near else f"models for {task}: {some(able)}"
        message = f"no model {quote(name)}; {others}{more}"
        if not near:  # of another service
            message += "; without a model the default answers; SEMBLANCE_MODEL_ALIASES=NAME=MODEL serves other names"
            message += " to other services' clients alone (docs/dialects.md)"
        super().__init__(message, field=field)


class HeadTimeout(RequestError):
    """The first line and the headers did not arrive in time."""

    status, code = 408, "head_timeout"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no whole head of a request within {seconds:g} seconds")


class BodyTimeout(RequestError):
    """The body did not arrive in time."""

    status, code = 408, "body_timeout"


class TooLarge(RequestError):
    """A body, a text or a list over its limit."""

    status, code = 413, "too_large"


def _shown(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{max(0.0, seconds):.2g}"  # 350, no 3.5e+02


class TooSlow(TooLarge):
    """It would take longer than the time limit, at the present pace; `limit` of its items, of their mean, would not."""

    code = "too_slow"

    def __init__(self, seconds: float, possible: float) -> None:
        self.seconds, self.possible = seconds, possible
        super().__init__(
            f"some {_shown(seconds)} seconds of work, as far as is known, of which {_shown(possible)} can surely be "
            "done in the time that is left (SEMBLANCE_REQUEST_TIMEOUT)"
        )

    def of(self, field: str, count: int, what: str = "", *, least: float = 0.0) -> "TooSlow":
        """The same, of a field with so many items, unless it is of another field already.

        Args:
            field: of the request.
            count: of its items.
            what: they are; as the field is called without it.
            least: seconds that it takes with any number of them.
        """
        if self.field is not None:
            return self
        error = TooSlow(self.seconds, self.possible)  # others may have got this one
        share = max(0.0, self.possible - least) / (self.seconds - least)
        error.field, error.limit = field, int(_SURE * count * share) or None
        error.message += f", for {amount(count, what or field)}" + (f"; {error.limit} at most" if error.limit else "")
        return error


class UnsupportedMedia(RequestError):
    """The body is declared as something other than plain JSON."""

    status, code = 415, "unsupported_media_type"


class InvalidRequest(RequestError):
    """A missing, unknown or mistyped field."""

    status, code = 422, "invalid_request"


class EmptyText(InvalidRequest):
    """A text without a single word or visible character."""

    code = "empty_text"

    def __init__(self, field: str) -> None:
        super().__init__("the text has no visible character", field=field)


class UnsupportedField(InvalidRequest):
    """A field of another service's request asks for what is not done here, and its answer would be another."""

    code = "unsupported_field"


class UnsupportedTask(InvalidRequest):
    """The model lacks the task of the route."""

    code = "unsupported_task"

    def __init__(self, name: str, task: str, able: Sequence[str], field: str = "model") -> None:
        super().__init__(
            f"model {name} has no {task}; models that have it: {some(able)}",
            field=field,
        )


class Overloaded(RequestError):
    """Too many requests are waiting."""

    status, code = 429, "overloaded"

    def __init__(
        self, message: str, *, limit: int | None = None, seconds: float = 1.0, share: float = 0.0, field: str = ""
    ) -> None:
        """Store the reason, and when to ask again.

        Args:
            message: for people.
            limit: the number that was exceeded.
            seconds: after which to ask again.
            share: of the request's work, that would be let in now.
            field: whose first `limit` items would be, where that is known.
        """
        super().__init__(message, field=field or None, limit=limit)
        self.headers = retry_headers(seconds)
        self.seconds, self._share = seconds, share

    def of(self, field: str, count: int, what: str = "") -> "Overloaded":
        """The same, of a field with so many items, where fewer of them would be let in now; `what` they are."""
        fitting = int(_SURE * self._share * count)
        if self.field is not None or fitting < 1:
            return self
        message = f"{self.message}; {fitting} of {count} {what or field} would end in time, as far as is known"
        return Overloaded(message, limit=fitting, seconds=self.seconds, field=field)


class RateLimited(RequestError):
    """This caller has sent too many requests."""

    status, code = 429, "rate_limited"

    def __init__(self, rate: str, limit: int, seconds: float) -> None:
        super().__init__(f"more than {rate} requests of one caller (SEMBLANCE_RATE_LIMIT)", limit=limit)
        self.headers = retry_headers(seconds)


class HeadTooLarge(RequestError):
    """The first line and the headers are over their limit."""

    status, code = 431, "head_too_large"

    def __init__(self, limit: int, unit: str = "bytes", what: str = "first line and headers") -> None:
        super().__init__(f"{what} of more than {limit} {unit}", limit=limit)


class InternalError(RequestError):
    """An error of the service; the log has the details under the request id."""

    status, code = 500, "internal_error"

    def __init__(self, message: str = "the service failed; its log says more under this request id") -> None:
        super().__init__(message)


class InferenceFailed(InternalError):
    """A graph or a tokenizer raised, or a number is not finite."""

    code = "inference_failed"

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"model {model} failed: {reason}")


class ModelUnavailable(RequestError):
    """A model that is not open could not be opened."""

    status, code = 503, "model_unavailable"

    def __init__(self, name: str, reason: str, seconds: float) -> None:
        super().__init__(f"model {name} could not be opened: {reason}")
        self.headers = retry_headers(seconds)


class ShuttingDown(RequestError):
    """The service stops, and waits for no answer any more."""

    status, code = 503, "shutting_down"
    headers: Mapping[str, str] = retry_headers(1)


class TookTooLong(RequestError):
    """No answer within the request timeout."""

    status, code = 503, "timeout"
    headers: Mapping[str, str] = retry_headers(1)


class HttpError(RequestError):
    """An error of the framework, such as 404 or 405."""

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None, more: str | None = None
    ) -> None:
        """Make it; `more` is said in the place of the message, which makes the code."""
        super().__init__(more or message)
        self.status = status
        self.code = message.lower().replace(" ", "_")
        self.headers = headers or {}


def some(names: Sequence[str], of: int | None = None) -> str:
    """The first few of these names, and how many more there are; `of` is the number of all, else that of `names`."""
    shown = names[:_FEW]
    more = (len(names) if of is None else of) - len(shown)
    return f"{', '.join(shown)} and {more} more (GET /models)" if more else ", ".join(shown) or "none"


def amount(count: int, what: str) -> str:
    """A count with its noun, which is given in the plural or is a field: `1 pair`, `2 pairs`, `1 inputs.sentences`."""
    if count != 1 or "." in what:
        return f"{count} {what}"
    return f"1 {what.removesuffix('s')}"


def quote(text: str) -> str:
    """A client's text, printable and shortened."""
    return ascii(text if len(text) <= _LONGEST_ECHO else text[:_LONGEST_ECHO] + "...")
