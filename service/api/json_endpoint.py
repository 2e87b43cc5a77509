"""POST routes as functions from bytes to bytes: read, call, write.

FastAPI describes these routes in /docs from the same functions and types; `service/http/edge.py` calls them through
this class instead of FastAPI's own handler, which costs more than the scoring of a pair.
"""

from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import orjson
from fastapi.routing import APIRoute

from service.api.body import Body, Reader, most_of
from service.api.pieces import Most
from service.parsing import AT
from service.settings import Settings

Call = Callable[[Any], Awaitable[tuple[str, Any]]]
_OTHER_KEYS = 64  # besides those of pairs


class JsonEndpoint:
    """A POST route."""

    def __init__(self, path: str, call: Call, request: Any, most: Most) -> None:
        """Prepare to read requests of this type.

        Args:
            path: of the route.
            call: a request -> the name of the model that answered, with its version where it has one, and the answer,
                of dicts, lists, tuples, texts and numbers.
            request: type of a request.
            most: values and keys that a body may have.
        """
        self.path = path
        self.call = call
        self.most = most
        self._read = Reader(request, most)

    async def __call__(self, body: Body) -> tuple[str, bytes]:
        """Answer a body.

        Returns:
            The name of the model that answered, and the answer's JSON.

        Raises:
            RequestError: of any kind.
        """
        # Most bodies are small: without a coroutine of their own they cost less.
        request = self._read.small(body.bytes) if body.is_small else await self._read.large(body)
        model, answer = await self.call(request)
        return model, orjson.dumps(answer)


def own_endpoint(route: APIRoute, settings: Settings) -> JsonEndpoint:
    """One of our own routes, whose answer names its model."""
    endpoint: Callable[[Any], Awaitable[dict[str, Any]]] = route.endpoint
    hints = get_type_hints(endpoint)

    async def call(request: Any) -> Any:
        answer = await endpoint(request)
        model, version = answer["model"], answer.get("model_version")
        return model if version is None else f"{model}{AT}{version}", answer

    del hints["return"]
    (request_type,) = hints.values()
    # An unknown key is an error, and every one of them is collected: there are to be few.
    most = most_of(settings)._replace(keys=2 * settings.max_pairs + _OTHER_KEYS)
    return JsonEndpoint(route.path, call, request_type, most)
