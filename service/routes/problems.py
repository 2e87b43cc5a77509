"""What is said of bodies that are no JSON, or no request of their route."""

import json
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from service.errors import InvalidRequest, NotJson, RequestError, UnsupportedField, quote

_BOUNDS = ("min_length", "max_length", "ge", "gt", "le", "lt")  # as pydantic names what a value must keep
_OTHERS_NAMED = 2  # errors beside the first, in a message
_LONGEST_NAME = 100  # characters of an unknown field, for which a near one is looked for
# What pydantic's parser says of one, without a path: of a first half without a second, and of a second half alone.
_SAYS_SURROGATE = ("unexpected end of hex escape", "lone leading surrogate")
UNSUPPORTED = "unsupported_field"  # type of pydantic's errors that become `UnsupportedField`
# What is said of the errors of pydantic that bodies have most, by their types.
_SAID: dict[str, str] = {
    "string_type": "expected a text",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "bool_type": "expected true or false",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "too_short": "expected at least {min_length}",
    "too_long": "expected at most {max_length}",
    "greater_than_equal": "expected {ge} or more",
    "less_than_equal": "expected {le} or less",
    "literal_error": "expected {expected}",
}


def what_is_no_json(body: bytes, why: str) -> RequestError:
    """The error of a body that is no JSON, or has a lone surrogate; `why` is what pydantic's parser says of it."""
    if why.startswith(_SAYS_SURROGATE):
        return InvalidRequest("the body: a lone surrogate is not a character")
    return NotJson(f"the body is not JSON: {_not_utf8(body) or why}")


FieldsAt = Callable[[Sequence[int | str]], Sequence[str]]


def what_is_wrong(problems: Sequence[Any], fields_at: FieldsAt) -> RequestError:
    """The first error of a request, with the fields of the next ones.

    Args:
        problems: of pydantic, in which the first part of a place is that of the request (`body`, `query`).
        fields_at: the fields that an object at a place of the body may have.
    """
    problem, *others = problems
    named = [f"{_path(other)}: {_said(other, fields_at)}" for other in others[:_OTHERS_NAMED]]
    if len(others) > _OTHERS_NAMED:
        named.append(f"{len(others) - _OTHERS_NAMED} more")
    more = f" (and {', '.join(named)})" if named else ""
    context = problem.get("ctx", {})
    bound = next((context[name] for name in _BOUNDS if name in context), None)
    limit = int(bound) if bound is not None and bound == int(bound) else None
    kind = UnsupportedField if problem["type"] == UNSUPPORTED else InvalidRequest
    return _invalid(".".join(map(str, problem["loc"][1:])), _said(problem, fields_at) + more, limit, kind)


def _said(problem: Any, fields_at: FieldsAt) -> str:
    """What is wrong with a field, in our words where pydantic's are about its own types."""
    *place, name = problem["loc"][1:] or ("",)
    if problem["type"] == "extra_forbidden" and (there := fields_at(place)):
        near = get_close_matches(str(name)[:_LONGEST_NAME], there, 1)
        return f"unknown field; {f'did you mean {near[0]}? ' if near else ''}there are {', '.join(there)}"
    said: str = _SAID.get(problem["type"], problem["msg"]).format_map(problem.get("ctx", {}))
    return said.removeprefix("Value error, ")


def _not_utf8(body: bytes) -> str | None:
    """How a body is encoded that is not UTF-8, as JSON is; None if it is."""
    if not (found := json.detect_encoding(body)).startswith("utf-8"):  # by its first zeros
        return f"it is {found[:6].upper()}, and JSON is sent as UTF-8 (RFC 8259)"
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start} (0x{body[error.start]:02x}) is not UTF-8, as which JSON is sent (RFC 8259)"
    return None


def _path(problem: Any) -> str:
    return quote(".".join(map(str, problem["loc"][1:])))[1:-1]


def _invalid(
    path: str, message: str, limit: int | None = None, kind: type[InvalidRequest] = InvalidRequest
) -> InvalidRequest:
    field = quote(path)[1:-1]  # may contain names of the client's
    return kind(f"{field or 'the body'}: {message}", field=field or None, limit=limit)
