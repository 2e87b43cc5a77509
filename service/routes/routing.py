"""FastAPI's routes, with what ours do besides: a bounded body is parsed once, and errors name the field.

An endpoint is given its request and a `ServedRequest`, and answers with a `JsonAnswer`; where an answer may be large
`ServedRequest.answer` makes and writes it, in a thread of the queue if it is. The commas, brackets and colons
of a large body are counted before it is parsed: a few bytes each would become objects of a hundred.
"""

import asyncio
import codecs
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import orjson
from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json, to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from core.ranking import MAX_ENTRIES
from service.engine.admission import RequestContext
from service.engine.queue import INLINE_SECONDS
from service.errors import Overloaded, TooLarge, TooSlow
from service.observe.telemetry import NO_MODEL
from service.routes.dialects import Dialect
from service.routes.problems import what_is_no_json, what_is_wrong
from service.service import Service
from service.settings import Settings

STATE = "semblance.state"  # in the scope
SMALL_BYTES = 131_072  # of a body that is read in the event loop, within 0.5 ms; 1,000 candidates have less
_KEYS_OF_A_PAIR, _KEYS_OF_AN_ENTRY = 2, 3  # the latter of an FAQ
_OTHER_KEYS = 64  # besides those
_MAX_FIELDS_OF_ITEMS = 16  # such as documents that are objects
_MAX_OTHER_VALUES = 1000
_VALUE_SECONDS, _VALUE_BYTES = 1e-7, 24  # expected, to make and write a value of an answer
_WRITTEN_AT_ONCE = 32  # items of a list of an answer, within 2 ms: nobody else has the interpreter meanwhile
Limit = Literal["max_pairs", "max_candidates", "max_sentences", "max_body_bytes"]  # settings
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass(slots=True, eq=False)
class RequestState:
    """One request and its answer, as the middleware keeps it."""

    id: str
    began: float  # by `perf_counter`
    received: Mapping[bytes, bytes]  # its headers
    key: str | None = None  # name of the API key
    caller: str = ""  # whose it is: `key:` and that name, else `address:` and the client's
    body: bytes = b""
    route: str | None = None  # path of the route that answers, once it is found
    model: str = NO_MODEL  # that answers
    context: RequestContext | None = None  # of a request that asks a model
    hold: Callable[[int], None] = lambda _: None  # so many bytes more, of an answer that is made
    arrived: bool = False  # whether the whole body was read
    started: bool = False  # whether the answer's head was sent
    status: int = 500
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)  # of every answer


class ServedRequest(Request):
    """A request as our endpoints get it, with the service that answers; one attribute costs less than a dependency."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take what ASGI gives."""
        super().__init__(scope, receive, send)
        self.service: Service = scope["app"].state.service
        self.request_state: RequestState = scope[STATE]
        # Of a request that asks a model, as the middleware made it; other endpoints need none.
        self.context = cast(RequestContext, self.request_state.context)

    def check_count(self, field: str, count: int, limit: Limit, *, each: int = 1) -> None:
        """Check the number of items in `field`, of which each counts as so many.

        Raises:
            TooLarge: it is more than the setting allows.
        """
        most = max(1, getattr(self.service.settings, limit) // each)
        if count > most:
            said = f"{count} {field}{f', of which each counts as {each}' if each > 1 else ''}"
            raise TooLarge(f"{said}, the limit is {most} (SEMBLANCE_{limit.upper()})", field=field, limit=most)

    async def answer(self, model: str, values: int, make: Callable[[], Any]) -> "JsonAnswer":
        """An answer that may be large: made and written in the event loop if it is small, else in a thread.

        Args:
            model: id of the one that answered.
            values: about how many numbers, texts, lists and objects it has; numbers of an array count half.
            make: makes its content.

        Raises:
            Overloaded, TooSlow: it would not be ready in time.
            Unwritable: it is large, and has an integer of more than 64 bits.
        """

        seconds = values * _VALUE_SECONDS
        if seconds <= INLINE_SECONDS:  # and it is no phase of the request
            return JsonAnswer(make(), model)
        self.request_state.hold(values * _VALUE_BYTES)  # before it is made: many may be, and wait for their turn
        return JsonAnswer(await self.service.queue.run(self.context, seconds, lambda: write(make())), model)


class Route(APIRoute):
    """A route. One with a body asks a model: `http/admission.py` has let its request in, and read its body."""

    methods: set[str]  # which FastAPI always fills

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of this route's path."""
        scope[STATE].route = self.path_format
        if scope["method"] not in self.methods:
            allowed = sorted(self.methods | ({"HEAD"} if "GET" in self.methods else set()))
            raise HTTPException(405, headers={"Allow": ", ".join(allowed)})
        if self.body_field is not None:
            # The middleware knows that it is JSON: FastAPI would parse the type again, and some clients name none.
            scope["headers"] = [each for each in scope["headers"] if each[0] != b"content-type"]
        await super().handle(scope, receive, send)

    def get_route_handler(self) -> Handler:
        """FastAPI's handler, which is given the body parsed; what it says of requests is said in our words."""
        answer = super().get_route_handler()

        async def handler(request: Request) -> Response:
            call = ServedRequest(request.scope, request.receive, request._send)
            if self.body_field is not None:
                call._body, call._json = call.request_state.body, await self._read(call)  # where `Request` keeps them
            try:
                return await answer(call)
            except RequestValidationError as error:
                # FastAPI's frame refers to the error, and its traceback to the frame: a reference cycle, which would
                # keep the body until the next garbage collection.
                error.__traceback__ = None
                problems = error.errors()
            except (TooSlow, Overloaded) as error:
                items = call.context.items
                raise (error if items is None else error.of(*items)) from None
            raise what_is_wrong(problems, self._fields_at)

        return handler

    async def _read(self, call: ServedRequest) -> Any:
        """The body, parsed within its bounds: a large one in a thread."""
        body = call.request_state.body
        limits = call.app.state.body_limits[self._is_strict]
        return parse(body, limits) if len(body) <= SMALL_BYTES else await asyncio.to_thread(parse, body, limits)

    def _fields_at(self, path: Sequence[int | str]) -> list[str]:
        """The fields that an object at a place of the body may have."""
        found = self._schema
        for step in (*path, None):
            while "$ref" in found or "anyOf" in found:
                name = found.get("$ref", "").rpartition("/")[2]
                found = self._schema["$defs"][name] if name else found["anyOf"][0]
            if step is not None:
                found = found.get("items", {}) if isinstance(step, int) else found.get("properties", {}).get(step, {})
        return list(found.get("properties", ()))

    @cached_property
    def _request(self) -> type[BaseModel]:
        """The type of its requests."""
        assert self.body_field is not None, "routes without a body have none"
        return cast(type[BaseModel], self.body_field.field_info.annotation)

    @cached_property
    def _is_strict(self) -> bool:
        """Whether an unknown field is an error."""
        return self._request.model_config.get("extra") == "forbid"

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return {} if self.body_field is None else self._request.model_json_schema()


def router_for(dialect: Dialect, tag: str, prefix: str = "") -> APIRouter:
    """A router whose routes are ours, with the errors of a dialect in their documentation."""
    return APIRouter(
        prefix=prefix, route_class=Route, tags=[tag], responses=dialect.responses, strict_content_type=False
    )


class JsonAnswer(Response):
    """JSON of dicts, lists, numbers and arrays, for which logs and metrics name the model that answered."""

    media_type = "application/json"

    def __init__(self, content: Any, model: str = NO_MODEL, status_code: int = 200) -> None:
        """Write the content, unless it is written; `model` is the id of the one that answered."""
        super().__init__(content, status_code)
        self._model = model

    def render(self, content: Any) -> bytes:
        """The content as it is sent."""
        return content if isinstance(content, bytes) else _write(content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note which model answered, for metrics and logs, and send the answer."""
        scope[STATE].model = self._model
        await super().__call__(scope, receive, send)


class Unwritable(Exception):
    """orjson does not write this."""


def write(content: Any) -> bytes:
    """JSON of what may be large, a few items of its lists at a time, so that other threads have their turns.

    Raises:
        Unwritable: there is an integer of more than 64 bits.
    """
    return b"".join(_parts(content))


def _parts(content: Any) -> Iterator[bytes | memoryview]:
    if isinstance(content, dict):
        for i, (key, value) in enumerate(content.items()):
            yield b"%s%s:" % (b"," if i else b"{", orjson.dumps(key))
            yield from _parts(value)
        yield b"}" if content else b"{}"
    elif isinstance(content, list):
        for at in range(0, len(content), _WRITTEN_AT_ONCE):
            yield b"," if at else b"["
            yield memoryview(_by_orjson(content[at : at + _WRITTEN_AT_ONCE]))[1:-1]
        yield b"]" if content else b"[]"
    else:
        yield _by_orjson(content)


def _by_orjson(content: Any) -> bytes:
    """JSON by orjson, which writes NumPy's arrays in a third of the time of lists, and floats in their digits."""
    try:
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        raise Unwritable from None


def _write(content: Any) -> bytes:
    """JSON of what is small: documents that are given back as they were sent may have integers of more than 64 bits."""
    try:
        return _by_orjson(content)
    except Unwritable:
        return to_json(content, inf_nan_mode="null", fallback=np.ndarray.tolist)  # 1e400 is null as by orjson


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
        return from_json(body, allow_inf_nan=False, cache_strings="none")  # with many keys a cache takes longer
    except ValueError as error:
        why = str(error)
    raise what_is_no_json(body, why)
