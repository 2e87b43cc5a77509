"""What is known of one request on its way: filled in by the middleware it passes and by its route, read by the log."""

from collections.abc import Mapping
from typing import cast

from starlette.types import Scope

from service.api.family import Dialect
from service.observe.telemetry import NO_MODEL
from service.observe.timings import Timings

EXCHANGE = "semblance.exchange"  # in the scope


class RequestState:
    """One request and its answer."""

    __slots__ = (
        "arrived", "began", "caller", "family", "headers", "id", "model", "received", "route", "started", "status",
        "timings",
    )  # fmt: skip

    def __init__(self, identity: str, began: float, received: Mapping[bytes, bytes]) -> None:
        """Begin, with the time of `perf_counter` and the request's headers."""
        self.id = identity
        self.began = began
        self.received = received
        self.caller: str | None = None  # name of the API key
        self.route: str | None = None  # path of the route that answers, once it is found
        self.family: Dialect | None = None  # whose errors the caller understands, once it is known
        self.model = NO_MODEL  # that answers
        self.timings: Timings | None = None  # of a request that scores
        self.arrived = False  # whether the whole body was read
        self.started = False  # whether the answer's head was sent
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []  # of every answer


def exchange_of(scope: Scope) -> RequestState:
    """The exchange of a request."""
    return cast(RequestState, scope[EXCHANGE])
