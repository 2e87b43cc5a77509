"""What is said of bodies that are no JSON, or no request of their route."""

import codecs
import json
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Any

from service.errors import InvalidRequest, NotJson, RequestError, UnsupportedField, quote

_PLACE_BYTES = 16_384  # of a body in which the place of a lone surrogate is looked for, within some 3 ms
_BOUNDS = ("min_length", "max_length", "ge", "gt", "le", "lt")  # as pydantic names what a value must keep
_OTHERS_NAMED = 2  # errors beside the first, in a message
_LONGEST_NAME = 100  # characters of an unknown field, for which a near one is looked for
_SURROGATE = "a lone surrogate is not a character"
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
# Encodings that JSON had before RFC 8259, by how a body begins; the longer marks first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def what_is_no_json(body: bytes, why: str) -> RequestError:
    """The error of a body that is no JSON, or has a lone surrogate; `why` is what pydantic's parser says of it."""
    if len(body) > _PLACE_BYTES:
        if why.startswith(_SAYS_SURROGATE):
            return InvalidRequest(f"the body: {_SURROGATE}")
    elif (found := _lone_surrogate(body)) is not None:
        return _invalid(".".join(reversed(found)), _SURROGATE)
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


def check_finite(field: str, value: Mapping[str, Any]) -> None:
    """Check an object of a body that is given back: 1e400 is read as infinite, and JSON cannot say that again.

    Raises:
        InvalidRequest: a number is beyond the range of a float; names its field.
    """
    if (found := _infinite(value)) is not None:
        raise _invalid(".".join([field, *reversed(found)]), "a number beyond the range of a double")


def _not_utf8(body: bytes) -> str | None:
    """How a body is encoded that is not UTF-8, as JSON is; None if it is."""
    marked = next((name for mark, name in _MARKS if body.startswith(mark)), None)
    if marked is None and 0 in body[:4]:  # the zeros of what is before the first text
        marked = "UTF-32" if body[:4].count(0) == 3 else "UTF-16"
    if marked is not None:
        return f"it is {marked}, and JSON is sent as UTF-8 (RFC 8259)"
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


def _lone_surrogate(body: bytes) -> list[str] | None:
    """The path to the first text with a lone surrogate, innermost first, if the JSON has no other error.

    pydantic's parser reports it as a syntax error without a path; the standard library accepts it.
    """
    try:
        return _find_surrogate(json.loads(body))
    except (ValueError, RecursionError):
        return None


def _find_surrogate(value: Any) -> list[str] | None:
    """The path is built on the way back from a hit, not for every value."""
    if isinstance(value, str):
        return None if _can_be_encoded(value) else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found = [] if isinstance(key, str) and _find_surrogate(key) is not None else _find_surrogate(item)
        if found is not None:
            found.append(str(key))
            return found
    return None


def _infinite(value: Any) -> list[str] | None:
    """The path to the first number that is not finite, innermost first; most values are neither number nor list."""
    for key, item in value.items() if type(value) is dict else enumerate(value):
        kind = type(item)
        found: list[str] | None = None
        if kind is float:
            found = None if isfinite(item) else []
        elif kind is dict or kind is list:
            found = _infinite(item)
        if found is not None:
            found.append(str(key))
            return found
    return None


def _can_be_encoded(text: str) -> bool:
    """Whether it has no lone surrogate; a check of each character would take 0.1 s for a text of 1 MB."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
