"""Bodies: JSON -> request, the errors of requests that do not fit, and the limits of lists and texts.

pydantic parses a body in one call: some 6 ms for 4 MB, in a thread above 128 KiB. The commas, brackets and colons
are counted before, so that a body of a few bytes an item, or with many unknown fields, is refused before it becomes
objects.

Lists and texts are then checked against the limits of the settings, the same for our own routes and the dialects.
"""

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from core.ranking import MOST_ENTRIES
from service.errors import (
    InvalidRequest,
    NotJson,
    Overloaded,
    RequestError,
    TooLarge,
    TooSlow,
    UnsupportedField,
    amount,
    quote,
)
from service.routes.texts import RequestTexts
from service.scoring.scorer import Scorer
from service.settings import Settings

SMALL_BYTES = 131_072  # read in the event loop, within 0.5 ms; 1,000 candidates have less
_KEYS_OF_A_PAIR, _KEYS_OF_AN_ENTRY = 2, 3  # the latter of an FAQ
_OTHER_KEYS = 64  # besides those
_PLACE_BYTES = 16_384  # of a body in which the place of a lone surrogate is looked for, within some 3 ms
_MOST_FIELDS_OF_ITEMS = 16  # such as documents that are objects
_MOST_OTHER_VALUES = 1000
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
Limit = Literal["max_pairs", "max_candidates", "max_sentences", "max_claims"]


class BodyLimits(NamedTuple):
    """What a body may have."""

    values: int
    keys: int


def most_of(settings: Settings, *, strict: bool) -> BodyLimits:
    """The values and keys that a body may have: somewhat more than any list within its limit needs.

    A `strict` request refuses unknown keys; pydantic collects an error for each, so there are to be few.
    """
    items = max(settings.max_candidates, 2 * settings.max_pairs, settings.max_sentences)
    values = _MOST_FIELDS_OF_ITEMS * items + _MOST_OTHER_VALUES
    keys = (
        max(_KEYS_OF_A_PAIR * settings.max_pairs, _KEYS_OF_AN_ENTRY * min(MOST_ENTRIES, settings.max_candidates))
        + _OTHER_KEYS
    )
    return BodyLimits(values, keys if strict else values)


def counts(body: bytes, most: BodyLimits) -> BodyLimits:
    """The values and keys of JSON: exact where those with the characters inside of texts would be more than `most`."""
    found = _separators(body)
    if found.values <= most.values and found.keys <= most.keys:
        return found
    if b"\\" in body:  # same length, without escaped quotes
        body = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    characters = np.frombuffer(body, np.uint8)
    inside = np.logical_xor.accumulate(characters == ord('"'))
    return _separators(characters[~inside].tobytes())


def _separators(body: bytes) -> BodyLimits:
    return BodyLimits(body.count(b",") + body.count(b"[") + body.count(b"{"), body.count(b":"))


def check(body: bytes, most: BodyLimits) -> None:
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


class BodyParser:
    """Parses the bodies of one type of request."""

    def __init__(self, request: Any) -> None:
        self._adapter = TypeAdapter[Any](request)
        self._parse = self._adapter.validator.validate_json

    def __call__(self, body: bytes, most: BodyLimits) -> Any:
        """The request in a body, which may have `most` values and keys.

        Raises:
            RequestError: the body is not JSON, not of this type, or too large.
        """
        body = without_mark(body)
        check(body, most)
        try:
            return self._parse(body)
        except ValidationError as error:
            raise what_is_wrong(body, error, self._known) from None

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return self._adapter.json_schema()

    def _known(self, path: Sequence[int | str]) -> list[str]:
        """The fields of the object at a place of a body."""
        found = self._schema
        for step in (*path, None):
            while "$ref" in found or "anyOf" in found:
                name = found.get("$ref", "").rpartition("/")[2]
                found = self._schema["$defs"][name] if name else found["anyOf"][0]
            if step is not None:
                found = found.get("items", {}) if isinstance(step, int) else found.get("properties", {}).get(step, {})
        return list(found.get("properties", ()))


def without_mark(body: bytes) -> bytes:
    """A body without the byte-order mark that some editors put before UTF-8, which RFC 8259 lets us ignore."""
    return body.removeprefix(codecs.BOM_UTF8)


def what_is_wrong(
    body: bytes, error: ValidationError, known: Callable[[Sequence[int | str]], Sequence[str]] = lambda _: ()
) -> RequestError:
    """The first error of a body, with the fields of the next ones; `known` are the fields at a place of it."""
    problems: list[Any] = error.errors(include_url=False, include_input=False)
    problem, *others = problems
    context = problem.get("ctx", {})
    if problem["type"] != "json_invalid":
        named = [f"{_path(other)}: {_said(other, known)}" for other in others[:_OTHERS_NAMED]]
        if len(others) > _OTHERS_NAMED:
            named.append(f"{len(others) - _OTHERS_NAMED} more")
        more = f" (and {', '.join(named)})" if named else ""
        limit = next((context[name] for name in _BOUNDS if name in context), None)
        kind = UnsupportedField if problem["type"] == UNSUPPORTED else InvalidRequest
        return _invalid(".".join(map(str, problem["loc"])), _said(problem, known) + more, limit, kind)
    why = context.get("error", problem["msg"])
    if len(body) > _PLACE_BYTES:
        if why.startswith(_SAYS_SURROGATE):
            return InvalidRequest(f"the body: {_SURROGATE}")
    elif (found := _lone_surrogate(body)) is not None:
        return _invalid(".".join(reversed(found)), _SURROGATE)
    return NotJson(f"the body is not JSON: {_not_utf8(body) or why}")


def _said(problem: Any, known: Callable[[Sequence[int | str]], Sequence[str]]) -> str:
    """What is wrong with a field, in our words where pydantic's are about its own types."""
    *place, name = problem["loc"] or ("",)
    if problem["type"] == "extra_forbidden" and (there := known(place)):
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
    return quote(".".join(map(str, problem["loc"])))[1:-1]


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


@contextmanager
def counted(field: str, count: int) -> Iterator[None]:
    """Work on the `count` items of a field: an error that it takes too long now says how many would not."""
    try:
        yield
    except (TooSlow, Overloaded) as error:
        raise error.of(field, count) from None


class RequestLimits:
    """The limits of one service."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def check_count(self, field: str, count: int, limit: Limit) -> None:
        """Check the length of the list in `field`.

        Raises:
            TooLarge: it is longer than the setting allows.
        """
        self._check(field, count, limit, f"{count} {field}")

    def check_product(self, field: str, some: tuple[int, str], others: tuple[int, str]) -> None:
        """Check the number of pairs that each of `some` makes with each of `others`: counts, and what they are.

        Raises:
            TooLarge: SEMBLANCE_MAX_PAIRS allows fewer.
        """
        (n, what), (m, other) = some, others
        self._check(field, n * m, "max_pairs", f"{amount(n, what)} with {amount(m, other)} are {n * m} pairs")

    def check_documents(self, documents: Sequence[str]) -> None:
        """Check the length of all documents together.

        Raises:
            TooLarge: it is more than the setting allows.
        """
        chars = sum(map(len, documents))
        self._check("documents", chars, "max_document_chars", f"documents of {chars} characters")

    def check_texts(self, texts: RequestTexts) -> None:
        """Check the length of each of at least one text.

        Raises:
            TooLarge: one is longer than the setting allows; names the first such text.
        """
        if max(map(len, texts.texts)) > self._settings.max_text_chars:
            for i, text in enumerate(texts.texts):
                self.check_chars(texts.where(i), len(text))

    def check_chars(self, field: str, chars: int) -> None:
        """Check the length of one text, which need not be made yet; raises as `check_texts`."""
        self._check(field, chars, "max_text_chars", f"a text of {chars} characters")

    def check_expanded(self, field: str, template: str, place: str, texts: Sequence[str]) -> None:
        """Check a template with each text in its places, and all of them together, before they are made.

        Raises:
            TooLarge: one would be longer than the setting allows, or all together than a body may be.
        """
        places = template.count(place)
        bare = len(template) - places * len(place)
        self.check_chars(field, bare + places * max(map(len, texts)))
        together = bare * len(texts) + places * sum(map(len, texts))
        self._check(field, together, "max_body_bytes", f"with all its labels {together} characters")

    def check_time(self, scorer: Scorer, field: str, count: int, most: float, *, at_least: float = 1.0) -> None:
        """Check how long `count` new pairs take, before they are read.

        Args:
            scorer: of the model.
            field: of the request, that has the pairs.
            count: of them.
            most: expected seconds of work that would end in time (`Admissions.possible`).
            at_least: how much of what the measured pairs took these take certainly.

        Raises:
            TooSlow: they take longer.
        """
        seconds = count * scorer.seconds_per_new_pair
        if at_least * seconds > most:
            raise TooSlow(seconds, most).of(field, count)

    def _check(self, field: str, count: int, setting: str, said: str) -> None:
        most: int = getattr(self._settings, setting)
        if count > most:
            raise TooLarge(f"{said}, the limit is {most} (SEMBLANCE_{setting.upper()})", field=field, limit=most)
