"""Bodies: JSON -> request, and the errors of requests that do not fit.

pydantic parses a body in one call: some 6 ms for 4 MB, in a thread above 128 KiB. The commas, brackets and colons
are counted before, so that a body of a few bytes an item, or with many unknown fields, is refused before it becomes
objects.
"""

import json
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from service.errors import InvalidRequest, NotJson, RequestError, TooLarge, quote
from service.settings import Settings

SMALL_BYTES = 131_072  # read in the event loop, within 0.5 ms; 1,000 candidates have less
_OTHER_KEYS = 64  # besides those of pairs
_PLACE_BYTES = 16_384  # of a body in which the place of a lone surrogate is looked for, within some 3 ms
_MOST_FIELDS_OF_ITEMS = 16  # such as documents that are objects
_MOST_OTHER_VALUES = 1000
_OTHERS_NAMED = 2  # errors beside the first, in a message
_SURROGATE = "a lone surrogate is not a character"
# What pydantic's parser says of one, without a path: of a first half without a second, and of a second half alone.
_SAYS_SURROGATE = ("unexpected end of hex escape", "lone leading surrogate")


class Most(NamedTuple):
    """What a body may have."""

    values: int
    keys: int


def most_of(settings: Settings, *, strict: bool) -> Most:
    """The values and keys that a body may have: somewhat more than any list within its limit needs.

    A `strict` request refuses unknown keys; pydantic collects an error for each, so there are to be few.
    """
    items = max(settings.max_candidates, 2 * settings.max_pairs, settings.max_sentences)
    values = _MOST_FIELDS_OF_ITEMS * items + _MOST_OTHER_VALUES
    return Most(values, 2 * settings.max_pairs + _OTHER_KEYS if strict else values)


def counts(body: bytes, most: Most) -> Most:
    """The values and keys of JSON: exact where those with the characters inside of texts would be more than `most`."""
    found = _separators(body)
    if found.values <= most.values and found.keys <= most.keys:
        return found
    if b"\\" in body:  # same length, without escaped quotes
        body = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    characters = np.frombuffer(body, np.uint8)
    inside = np.logical_xor.accumulate(characters == ord('"'))
    return _separators(characters[~inside].tobytes())


def _separators(body: bytes) -> Most:
    return Most(body.count(b",") + body.count(b"[") + body.count(b"{"), body.count(b":"))


def check(body: bytes, most: Most) -> None:
    """Refuse JSON that would become too many objects.

    Raises:
        TooLarge: it has more values or keys than these.
    """
    if len(body) <= most.keys:  # cannot have more of anything; `most.values` is no less
        return
    found = counts(body, most)
    for number, limit, what in ((found.values, most.values, "values"), (found.keys, most.keys, "fields")):
        if number > limit:
            raise TooLarge(f"the body has more than {limit} {what}", limit=limit)


class Reader:
    """Parses the bodies of one type of request."""

    def __init__(self, request: Any) -> None:
        self._parse = TypeAdapter[Any](request).validator.validate_json

    def __call__(self, body: bytes, most: Most) -> Any:
        """The request in a body, which may have `most` values and keys.

        Raises:
            RequestError: the body is not JSON, not of this type, or too large.
        """
        check(body, most)
        try:
            return self._parse(body)
        except ValidationError as error:
            raise what_is_wrong(body, error) from None


def what_is_wrong(body: bytes, error: ValidationError) -> RequestError:
    """The first error of a body, with the fields of the next ones."""
    problems: list[Any] = error.errors(include_url=False, include_input=False)
    problem, *others = problems
    context = problem.get("ctx", {})
    if problem["type"] != "json_invalid":
        named = [f"{_path(other)}: {other['msg']}" for other in others[:_OTHERS_NAMED]]
        if len(others) > _OTHERS_NAMED:
            named.append(f"{len(others) - _OTHERS_NAMED} more")
        more = f" (and {', '.join(named)})" if named else ""
        limit = context.get("min_length", context.get("ge"))
        return _invalid(".".join(map(str, problem["loc"])), problem["msg"] + more, limit)
    why = context.get("error", problem["msg"])
    if len(body) > _PLACE_BYTES:
        if why.startswith(_SAYS_SURROGATE):
            return InvalidRequest(f"the body: {_SURROGATE}")
    elif (found := _lone_surrogate(body)) is not None:
        return _invalid(".".join(reversed(found)), _SURROGATE)
    return NotJson(f"the body is not JSON: {why}")


def _path(problem: Any) -> str:
    return quote(".".join(map(str, problem["loc"])))[1:-1]


def _invalid(path: str, message: str, limit: int | None = None) -> InvalidRequest:
    field = quote(path)[1:-1]  # may contain names of the client's
    return InvalidRequest(f"{field or 'the body'}: {message}", field=field or None, limit=limit)


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
