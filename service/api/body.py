"""Bodies: JSON -> request, and the errors of requests that do not fit.

A small body is parsed by pydantic at once, most within 0.1 ms and any within a few. A large one is parsed in pieces
(`service/api/pieces.py`), so that other requests have turns in between. Its values and keys are counted, so that a list
of a million invalid items is refused at its first one.
"""

import asyncio
import json
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from service.api.pieces import Broken, Most, TooMuch, read_in_pieces
from service.errors import InvalidRequest, NotJson, RequestError, TooLarge, quote
from service.settings import Settings

SMALL_BYTES = 131_072  # read at once, unless there are many keys: pydantic collects an error for each unknown one
# Binary tensors after JSON (service/api/tensors.py): their media type, and the header with the length of the JSON.
TENSORS, JSON_LENGTH = b"application/octet-stream", b"inference-header-content-length"
_FEW_KEYS = 2048
_BEGINNING_BYTES = 8_192
_PLACE_BYTES = 16_384  # of a body in which the place of a lone surrogate is looked for, within some 3 ms
_MOST_FIELDS_OF_ITEMS = 16  # such as documents that are objects
_MOST_OTHER_VALUES = 1000
_OTHERS_NAMED = 2  # errors beside the first, in a message
_SURROGATE = "a lone surrogate is not a character"
# What pydantic's parser says of one, without a path: of a first half without a second, and of a second half alone.
_SAYS_SURROGATE = ("unexpected end of hex escape", "lone leading surrogate")
# pydantic's messages for parsed JSON name Python types; these are its messages for JSON text.
_AS_JSON = {
    "model_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "list_type": "Input should be a valid array",
}


def most_of(settings: Settings) -> Most:
    """The values and keys that a body may have: somewhat more than any list within its limit needs."""
    items = max(settings.max_candidates, 2 * settings.max_pairs, settings.max_sentences)
    values = _MOST_FIELDS_OF_ITEMS * items + _MOST_OTHER_VALUES
    return Most(values, values)


class Body:
    """The body of a request, parsed once."""

    __slots__ = (
        "_content", "_problem", "_was_read", "bytes", "is_small", "json_length", "json_of_answer", "meant",
    )  # fmt: skip

    def __init__(self, found: bytes = b"") -> None:
        self.bytes = found
        self.is_small = len(found) <= SMALL_BYTES and found.count(b":") <= _FEW_KEYS
        self.meant: object = None  # the operation that it is meant for, on a path that several share
        # Bytes of JSON before binary tensors: of the body, as the header says it, and of the answer.
        self.json_length: bytes | None = None
        self.json_of_answer: int | None = None
        self._was_read = False
        self._content: Any = None
        self._problem: Broken | TooMuch | None = None

    async def content(self, most: Most) -> Any:
        """The JSON of a large body, parsed at the first call.

        Raises:
            Broken: it is not JSON.
            TooMuch: it has more values or keys.
        """
        if not self._was_read:
            reader = read_in_pieces(self.bytes, most)
            while not self._was_read:
                try:
                    next(reader)
                except StopIteration as end:
                    self._was_read, self._content = True, end.value
                except (Broken, TooMuch) as error:
                    self._was_read, self._problem = True, error
                else:
                    await asyncio.sleep(0)
        if self._problem is not None:
            raise self._problem
        return self._content

    def beginning(self) -> Any:
        """The first values of a large body; None if it is not JSON."""
        try:
            return from_json(self.bytes[:_BEGINNING_BYTES], allow_partial=True)
        except ValueError:
            return None


class Reader:
    """Parses the bodies of one type of request, which may have `most` values and keys."""

    def __init__(self, request: Any, most: Most) -> None:
        self._validator = TypeAdapter[Any](request).validator
        self._parse = self._validator.validate_json
        self._most = most

    def small(self, body: bytes) -> Any:
        """The request in a small body.

        Raises:
            RequestError: the body is not JSON, or not of this type.
        """
        try:
            return self._parse(body)
        except ValidationError as error:
            raise what_is_wrong(body, error) from None

    async def large(self, body: Body) -> Any:
        """The request in a large body; raises as `small`."""
        try:
            return self._validator.validate_python(await body.content(self._most))
        except ValidationError as error:
            raise _first_of(error) from None
        except Broken as error:
            if _lone_surrogate(error.text) is not None:
                raise InvalidRequest(f"the body: {_SURROGATE}") from None
            raise NotJson(f"the body is not JSON: {error}") from None
        except TooMuch as error:
            raise self._first_fault(body.bytes) or TooLarge(
                f"the body has more than {error.limit} {error.what}", limit=error.limit
            ) from None

    def _first_fault(self, body: bytes) -> RequestError | None:
        """The error in the beginning of a body that has too many values or keys."""
        try:
            self._validator.validate_json(body[:_BEGINNING_BYTES], allow_partial="on")
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            first = next((problem for problem in problems if problem["type"] != "missing"), None)
            if first is not None and first["type"] != "json_invalid":
                return _problem(first, " (and more)")
        return None


def what_is_wrong(body: bytes, error: ValidationError) -> RequestError:
    """The first error of a small body, with the number of others."""
    problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] != "json_invalid":
        return _first_of(error)
    why = problem.get("ctx", {}).get("error", problem["msg"])
    if len(body) > _PLACE_BYTES:
        if why.startswith(_SAYS_SURROGATE):
            return InvalidRequest(f"the body: {_SURROGATE}")
    elif (path := _lone_surrogate(body)) is not None:
        return _invalid(".".join(reversed(path)), _SURROGATE)
    return NotJson(f"the body is not JSON: {why}")


def _first_of(error: ValidationError) -> RequestError:
    """The first error, with the fields of the next ones."""
    first, *others = error.errors(include_url=False, include_input=False)
    named = [f"{_path(other)}: {_said(other)}" for other in others[:_OTHERS_NAMED]]
    if len(others) > _OTHERS_NAMED:
        named.append(f"{len(others) - _OTHERS_NAMED} more")
    return _problem(first, f" (and {', '.join(named)})" if named else "")


def _problem(problem: Any, more: str) -> RequestError:
    context = problem.get("ctx", {})
    limit = context.get("min_length", context.get("ge"))
    return _invalid(".".join(map(str, problem["loc"])), _said(problem) + more, limit)


def _path(problem: Any) -> str:
    return quote(".".join(map(str, problem["loc"])))[1:-1]


def _said(problem: Any) -> str:
    message: str = _AS_JSON.get(problem["type"], problem["msg"])
    return message


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
