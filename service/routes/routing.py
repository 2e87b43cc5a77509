"""FastAPI's routes, with what ours do besides: a bounded body is parsed once, and errors name the field.

An endpoint is given its request and a `ServedRequest`, and answers with a `JsonAnswer`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import orjson
from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.engine.admission import RequestContext
from service.observe.telemetry import NO_MODEL
from service.routes.dialects import Dialect
from service.routes.json_body import SMALL_BYTES, parse, what_is_wrong
from service.service import Service

STATE = "semblance.state"  # in the scope
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


class Route(APIRoute):
    """A route. One with a body asks a model: `http/admission.py` has let its request in, and read its body."""

    methods: set[str]  # which FastAPI always fills

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of this route's path."""
        scope[STATE].route = self.path
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
        """Write the content; `model` is the id of the one that answered."""
        super().__init__(content, status_code)
        self._model = model

    def render(self, content: Any) -> bytes:
        """JSON by orjson, which writes NumPy's arrays in a third of the time of lists, and floats in their digits."""
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note which model answered, for metrics and logs, and send the answer."""
        scope[STATE].model = self._model
        await super().__call__(scope, receive, send)
