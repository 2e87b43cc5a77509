"""POST requests of the families, and the selection by the body on a path that several share."""

from collections.abc import Awaitable, Sequence
from typing import Protocol, get_args, get_type_hints

from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic_core import from_json

from service.api.body import Body
from service.api.dialects.family import ErrorFormat, Family, own_error
from service.api.json_endpoint import Call, JsonEndpoint
from service.api.pieces import Most, TooMuch


class Endpoint(Protocol):
    """The answers of a POST path."""

    def __call__(self, body: Body) -> Awaitable[tuple[str, bytes]]:
        """A body -> the model that answered, the answer's JSON."""


class Operation(JsonEndpoint):
    """A POST route of a family."""

    def __init__(
        self,
        path: str,
        call: Call,
        family: Family,
        summary: str,
        *,
        most: Most,
        key: str = "",
        kind: type | tuple[type, ...] = object,
        of: tuple[str, type | tuple[type, ...]] | None = None,
    ) -> None:
        """Describe it.

        Args:
            path: of the route.
            call: see `JsonEndpoint`; its annotations are the types of request and answer.
            family: whose clients send it.
            summary: for the documentation.
            most: values and keys that a body may have.
            key: on a path that several operations share, the field that only this one's bodies have, or the path of
                one inside another ...
            kind: ... and the type of its value.
            of: another field of its bodies, and the type of its value.
        """
        hints = get_type_hints(call, include_extras=True)
        _, self.answer = get_args(hints.pop("return"))
        (request,) = hints.values()
        super().__init__(path, call, request, most)
        self.family = family
        self.summary = summary
        self.marker = f'"{key.rpartition(".")[2]}"'.encode()
        self.second_field = of is not None
        self._fields = [(key, kind)] if of is None else [(key, kind), of]

    def is_meant_by(self, content: object) -> bool:
        """Whether a parsed body is of this operation."""
        return all(_has(content, key, kind) for key, kind in self._fields)

    def route(self, dependencies: Sequence[Depends]) -> APIRoute:
        """The route, for the documentation only."""
        return APIRoute(
            self.path,
            self.call,
            methods=["POST"],
            response_model=self.answer,
            responses=self.family.responses,
            summary=self.summary,
            tags=[self.family.name],
            dependencies=dependencies,
        )


def _has(content: object, path: str, kind: type | tuple[type, ...]) -> bool:
    """Whether a value of this kind is there: in a field, or in a field inside one (`parameters.top_k`)."""
    for name in path.split("."):
        if not isinstance(content, dict) or name not in content:
            return False
        content = content[name]
    return isinstance(content, kind)


class Choice:
    """The operations of one path, and our own route if there is one; the body selects one."""

    def __init__(self, operations: Sequence[Operation], own: JsonEndpoint | None = None) -> None:
        """Join them; a body that matches no operation goes to our own route, or else to the first operation that is
        marked by a single field.
        """
        self.path = operations[0].path
        self._operations = operations
        self._own = own
        self._fallback = own or next(each for each in operations if not each.second_field)
        self._markers = [operation.marker for operation in operations]

    async def __call__(self, body: Body) -> tuple[str, bytes]:
        """Answer a body by the operation that it is meant for; see `JsonEndpoint`."""
        # Most requests are for our own route: without a marker they are not parsed twice.
        meant = self._own
        if meant is None or any(marker in body.bytes for marker in self._markers):
            meant = await self._meant(body)
        body.meant = meant
        return await meant(body)

    def error_format(self, body: Body) -> ErrorFormat:
        """The format of errors for the sender of this body."""
        meant = body.meant or self._fallback
        return meant.family.error if isinstance(meant, Operation) else own_error

    async def _meant(self, body: Body) -> JsonEndpoint:
        if self._own is None and len(self._operations) == 1:
            return self._operations[0]
        try:
            content = from_json(body.bytes) if body.is_small else await body.content(self._fallback.most)
        except ValueError:
            content = None
        except TooMuch:
            content = body.beginning()
        return next((operation for operation in self._operations if operation.is_meant_by(content)), self._fallback)
