"""Bodies: JSON parsed once, within a bound on what it may become, and what is said of requests that do not fit.

The commas, brackets and colons of a large body are counted before it is parsed: a few bytes each would become objects
of a hundred. FastAPI validates what was parsed.
"""

import codecs
import json
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import from_json

from core.ranking import MAX_ENTRIES
from service.errors import InvalidRequest, NotJson, RequestError, TooLarge, UnsupportedField, quote
from service.settings import Settings

SMALL_BYTES = 131_072  # read in the event loop, within 0.5 ms; 1,000 candidates have less
_KEYS_OF_A_PAIR, _KEYS_OF_AN_ENTRY = 2, 3  # the latter of an FAQ
_OTHER_KEYS = 64  # besides those
_PLACE_BYTES = 16_384  # of a body in which the place of a lone surrogate is looked for, within some 3 ms
_MAX_FIELDS_OF_ITEMS = 16  # such as documents that are objects
_MAX_OTHER_VALUES = 1000
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


class BodyLimits(NamedTuple):
    """What a body may have."""

    values: int
    keys: int


def max_counts(settings: Settings, *, strict: bool) -> BodyLimits:
    """The values and keys that a body may have: somewhat more than any list within its limit needs.

    A `strict` request refuses unknown keys; pydantic collects an error for each, so there are to be few.
    """
    items = max(settings.max_candidates, 2 * settings.max_pairs, settings.max_sentences)
    values = _MAX_FIELDS_OF_ITEMS * items + _MAX_OTHER_VALUES
    keys = (
        max(_KEYS_OF_A_PAIR * settings.max_pairs, _KEYS_OF_AN_ENTRY * min(MAX_ENTRIES, settings.max_candidates))
        + _OTHER_KEYS
    )
    return BodyLimits(values, keys if strict else values)


def counts(body: bytes, limits: BodyLimits) -> BodyLimits:
    """The values and keys of JSON: exact where those with the characters inside of texts would exceed `limits`."""
    found = _separators(body)
    if found.values <= limits.values and found.keys <= limits.keys:
        return found
    if b"\\" in body:  # same length, without escaped quotes
        body = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    characters = np.frombuffer(body, np.uint8)
    inside = np.logical_xor.accumulate(characters == ord('"'))
    return _separators(characters[~inside].tobytes())


def _separators(body: bytes) -> BodyLimits:
    return BodyLimits(body.count(b",") + body.count(b"[") + body.count(b"{"), body.count(b":"))


def check(body: bytes, limits: BodyLimits) -> None:
    """Refuse JSON that would become too many objects.

    Raises:
        TooLarge: it has more values or keys than these.
    """
    if len(body) <= limits.keys:  # cannot have more of anything; `limits.values` is no less
        return
    found = counts(body, limits)
    for number, limit, what in ((found.values, limits.values, "values"), (found.keys, limits.keys, "fields")):
        if number > limit:
            raise TooLarge(f"the body has more than {limit} {what}", limit=limit)


def parse(body: bytes, limits: BodyLimits) -> Any:
    """What a body says; also called in a thread.

    Raises:
        NotJson: it is no JSON, or not in UTF-8.
        InvalidRequest: a text in it has a lone surrogate.
        TooLarge: it has more values or keys than these.
    """
    body = body.removeprefix(codecs.BOM_UTF8)  # which some editors put there, and RFC 8259 lets us ignore
    check(body, limits)
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        why = str(error)
    if len(body) > _PLACE_BYTES:
        if why.startswith(_SAYS_SURROGATE):
            raise InvalidRequest(f"the body: {_SURROGATE}")
    elif (found := _lone_surrogate(body)) is not None:
        raise _invalid(".".join(reversed(found)), _SURROGATE)
    raise NotJson(f"the body is not JSON: {_not_utf8(body) or why}")


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
    return said


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


def _can_be_encoded(text: str) -> bool:
    """Whether it has no lone surrogate; a check of each character would take 0.1 s for a text of 1 MB."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
