"""One POST route as a function from bytes to bytes: parse, call, serialise, and say what does not fit.

FastAPI describes these routes in /docs from the same endpoint and the same types; `service/edge.py` calls them
through this class instead of FastAPI's own handler.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from service.errors import InvalidRequest, NotJson, RequestError, quote
from service.repository import AT


class JsonEndpoint:
    """A POST route's endpoint `async def f(request: Request) -> Answer`, where the answer names its model."""

    def __init__(self, route: APIRoute) -> None:
        hints = get_type_hints(route.endpoint)
        answer = hints.pop("return")
        (request,) = hints.values()
        self.path = route.path
        self._parse = TypeAdapter[Any](request).validator.validate_json
        self._serialise = TypeAdapter[Any](answer).serializer.to_json
        self._call: Callable[[Any], Awaitable[dict[str, Any]]] = route.endpoint

    async def __call__(self, body: bytes) -> tuple[str, bytes]:
        """Answer a body.

        Returns:
            The model that answered, with its version where it has one, and the answer's JSON.

        Raises:
            RequestError: of any kind.
        """
        try:
            request = self._parse(body)
        except ValidationError as error:
            raise what_is_wrong(body, error) from None
        answer = await self._call(request)
        model, version = answer["model"], answer.get("model_version")
        return model if version is None else f"{model}{AT}{version}", self._serialise(answer)


def what_is_wrong(body: bytes, error: ValidationError) -> RequestError:
    """The first thing that does not fit, and how many more there are."""
    problem = error.errors(include_url=False, include_input=False)[0]
    context = problem.get("ctx", {})
    if problem["type"] == "json_invalid":
        if (path := _lone_surrogate(body)) is not None:
            return _invalid(path, "a lone surrogate is not a character")
        return NotJson(f"the body is not JSON: {context.get('error', problem['msg'])}")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    limit = context.get("min_length", context.get("ge"))
    return _invalid(".".join(map(str, problem["loc"])), problem["msg"] + more, limit)


def _invalid(path: str, message: str, limit: int | None = None) -> InvalidRequest:
    field = quote(path)[1:-1]  # the names in it may be the client's own
    return InvalidRequest(f"{field or 'the body'}: {message}", field=field or None, limit=limit)


def _lone_surrogate(body: bytes) -> str | None:
    """Where in a body the first text with a lone surrogate stands, if that is all that is wrong with its JSON.

    The parser refuses one as a mistake of syntax without saying where; the standard library lets it pass.
    """
    try:
        return _find_surrogate(json.loads(body), "")
    except (ValueError, RecursionError):
        return None


def _find_surrogate(value: Any, path: str) -> str | None:
    if isinstance(value, str):
        return path if any("\ud800" <= character <= "\udfff" for character in value) else None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        here = f"{path}.{key}" if path else str(key)
        if _find_surrogate(key, here) is not None:
            return here
        if (found := _find_surrogate(item, here)) is not None:
            return found
    return None
