"""One kind of request that a family's clients send, and the choice among several that share a path."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, get_args, get_type_hints

from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from service.dialects.family import Family, Wording, own_words
from service.json_endpoint import JsonEndpoint, what_is_wrong


class Endpoint(Protocol):
    """What the door calls: a POST route as a function from bytes to bytes."""

    @property
    def path(self) -> str:
        """Where it stands."""

    def __call__(self, body: bytes) -> Awaitable[tuple[str, bytes]]:
        """Answer a body: the model that answered, and the answer's JSON.

        Raises:
            RequestError: of any kind.
        """


class Operation:
    """One POST request of one family."""

    def __init__(
        self,
        path: str,
        call: Callable[[Any], Awaitable[tuple[str, Any]]],
        family: Family,
        summary: str,
        *,
        key: str = "",
        kind: type | tuple[type, ...] = object,
    ) -> None:
        """Describe it.

        Args:
            path: where it stands.
            call: `async def f(request: Request) -> tuple[str, Answer]`: the model that answered, and what it says.
            family: whose it is.
            summary: for the documentation.
            key: on a path that several share, the field that only this one's bodies have ...
            kind: ... and of what kind its value then is.
        """
        hints = get_type_hints(call, include_extras=True)
        _, self.answer = get_args(hints.pop("return"))
        (self.request,) = hints.values()
        self.path = path
        self.call = call
        self.family = family
        self.summary = summary
        self.marker = f'"{key}"'.encode()
        self._key, self._kind = key, kind
        self._parse = TypeAdapter[Any](self.request).validator.validate_json
        self._serialise = TypeAdapter[Any](self.answer).serializer.to_json

    async def __call__(self, body: bytes) -> tuple[str, bytes]:
        """See `Endpoint`."""
        try:
            request = self._parse(body)
        except ValidationError as error:
            raise what_is_wrong(body, error) from None
        model, answer = await self.call(request)
        return model, self._serialise(answer)

    def is_meant_by(self, content: object) -> bool:
        """Whether a body, read as JSON, is one of this operation's."""
        return isinstance(content, dict) and self._key in content and isinstance(content[self._key], self._kind)

    def route(self, dependencies: Sequence[Depends]) -> APIRoute:
        """For the documentation: the door calls the operation itself."""
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


class Choice:
    """The operations of one path, our own route among them if it has one; the body says which is meant."""

    def __init__(self, operations: Sequence[Operation], own: JsonEndpoint | None = None) -> None:
        """Join them; a body that is nobody's is answered by our own route, or else by the first operation."""
        self.path = operations[0].path
        self._operations = operations
        self._own = own
        self._markers = [operation.marker for operation in operations]

    def __call__(self, body: bytes) -> Awaitable[tuple[str, bytes]]:
        """See `Endpoint`."""
        return self._meant(body)(body)

    def wording(self, body: bytes) -> Wording:
        """How to tell the sender of this body that it failed."""
        meant = self._meant(body)
        return meant.family.words if isinstance(meant, Operation) else own_words

    def _meant(self, body: bytes) -> Operation | JsonEndpoint:
        if self._own is None and len(self._operations) == 1:
            return self._operations[0]
        if self._own is not None:  # our own requests are the many: they are known without being parsed twice
            for marker in self._markers:
                if marker in body:
                    break
            else:
                return self._own
        try:
            content = from_json(body)
        except ValueError:
            content = None
        fallback = self._own or self._operations[0]
        return next((operation for operation in self._operations if operation.is_meant_by(content)), fallback)
