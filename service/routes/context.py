"""What an endpoint is given besides its request: the request's context, and the service; and the form of its answer."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

import orjson
from fastapi import Depends, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.engine.context import RequestContext
from service.observe.metrics import Timings
from service.observe.telemetry import NO_MODEL
from service.service import Service

STATE = "semblance.state"  # in the scope


class RequestState:
    """One request and its answer, as the middleware keeps it."""

    __slots__ = (
        "arrived", "began", "caller", "context", "headers", "id", "model", "received", "route", "started", "status",
    )  # fmt: skip

    def __init__(self, identity: str, began: float, received: Mapping[bytes, bytes]) -> None:
        """Begin, with the time of `perf_counter` and the request's headers."""
        self.id = identity
        self.began = began
        self.received = received
        self.caller: str | None = None  # name of the API key
        self.route: str | None = None  # path of the route that answers, once it is found
        self.model = NO_MODEL  # that answers
        self.context: RequestContext | None = None  # of a request that asks a model
        self.arrived = False  # whether the whole body was read
        self.started = False  # whether the answer's head was sent
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []  # of every answer

    @property
    def timings(self) -> Timings | None:
        """Its seconds by phase; None unless it asks a model."""
        return None if self.context is None else self.context.timings


def state_of(scope: Scope) -> RequestState:
    """The state of a request."""
    return cast(RequestState, scope[STATE])


async def request_context(request: Request) -> RequestContext:
    """The context of a request that asks a model, as the middleware made it."""
    context = state_of(request.scope).context
    assert context is not None, "only routes that ask a model have one"
    return context


async def running_service(request: Request) -> Service:
    """The service that answers."""
    return cast(Service, request.app.state.service)


Context = Annotated[RequestContext, Depends(request_context)]
Running = Annotated[Service, Depends(running_service)]


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
        state_of(scope).model = self._model
        await super().__call__(scope, receive, send)
