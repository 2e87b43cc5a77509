"""The routes of FastAPI's router: each has the operations of one path and method, and calls what it describes."""

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Union

import orjson
from fastapi import Body, Path
from fastapi.openapi.models import Example
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from service.routes.body import SMALL_BYTES, counts, most_of, without_mark
from service.routes.operation import Dialect, Operation, RequestState, RequestView, state_of
from service.service import Service

_BEGINNING_BYTES = 8_192  # by which a body with too many values is given to its dialect
_LONGEST_PATH = 200  # characters of a path that is nowhere, for which a near one is looked for
_CLOSE = 0.8  # of difflib's ratio
# Paths that an earlier version had, those below them too, and what does the same.
_GONE = {
    "/pooling": "POST /v1/embeddings",
    "/infinity/embeddings": "POST /v1/embeddings",
    "/infinity/rerank": "POST /v1/rerank",
    "/v2/health": "GET /health/ready",
    "/v2/models": "POST /v1/embeddings or /v2/rerank",
}
MiddlewareFactory = Callable[[ASGIApp, Operation], ASGIApp]  # what a request of an operation passes besides


class RouteEndpoint:
    """Answers the requests of one path and method: an ASGI application, with the signature that FastAPI describes."""

    def __init__(self, operations: Sequence[Operation], service: Service, examples: Mapping[str, str]) -> None:
        """Join operations; a body that is meant for none goes to the one without a key, or else to the first that is
        marked by a single field.

        `examples` are values of parameters of the path, for the documentation.
        """
        self._service = service
        self._most = {strict: most_of(service.settings, strict=strict) for strict in (False, True)}
        self._marked = [operation for operation in operations if operation.marker]
        unmarked = [operation for operation in operations if not operation.marker]
        self._takes_all = unmarked[0] if unmarked else None
        self.usual = self._takes_all or next(each for each in operations if len(each.fields) == 1)
        if len(operations) == 1:
            self._takes_all, self._marked = operations[0], []
        self.__doc__ = None  # FastAPI would take that of the class for the description
        self.__signature__ = inspect.Signature(list(_parameters(operations, examples)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the middleware has read its body."""
        state = state_of(scope)
        asked = RequestView(scope, (await receive())["body"] if self.usual.scores else b"")
        if len(asked.body) <= SMALL_BYTES:
            operation, request = self._understood(asked, state)
        else:
            operation, request = await asyncio.to_thread(self._understood, asked, state)
        reply = await operation.answer(asked, request)
        state.model = reply.model
        body = reply.content
        if not isinstance(body, bytes):
            body = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        headers = [(b"content-type", reply.media), (b"content-length", b"%d" % len(body)), *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _understood(self, asked: RequestView, state: RequestState) -> tuple[Operation, Any]:
        operation = self._meant(asked.body)
        state.dialect = operation.dialect
        return operation, operation.read(asked, self._most[operation.dialect.strict])

    def _meant(self, body: bytes) -> Operation:
        # Most requests are for our own operation: without a marker they are not parsed twice.
        if self._takes_all is not None and not any(each.marker in body for each in self._marked):
            return self._takes_all
        body, most = without_mark(body), self._most[False]
        values, keys = counts(body, most)
        few = values <= most.values and keys <= most.keys
        try:
            content = from_json(body) if few else from_json(body[:_BEGINNING_BYTES], allow_partial=True)
        except ValueError:
            content = None
        return next((each for each in self._marked if each.is_meant_by(content)), self.usual)


class Route(APIRoute):
    """One path and method."""

    def __init__(
        self, operations: Sequence[Operation], service: Service, examples: Mapping[str, str], around: MiddlewareFactory
    ) -> None:
        """Create the route of one path and method.

        Args:
            operations: of one path and method.
            service: whose limits hold.
            examples: values of parameters of the path.
            around: adds the middleware that only this route's requests pass.
        """
        first = operations[0]
        answering = RouteEndpoint(operations, service, examples)
        self.answers = _answers(operations)
        super().__init__(
            first.path,
            answering,
            methods=[first.method],
            name=first.name,
            summary=" / ".join(each.summary for each in operations),
            tags=list(dict.fromkeys(each.dialect.name for each in operations)),
            response_model=None,  # `Table.describe` adds the types
            response_class=JSONResponse if 200 in self.answers else Response,
            responses=_responses(operations),
        )
        self.app = around(answering, first)
        self.method = first.method
        self.dialect = answering.usual.dialect
        self.operations = operations
        self.allowed: Sequence[str] = ()  # all methods of the path
        self._literal = None if "{" in first.path else first.path

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As Starlette's; a path without parameters costs no regular expression."""
        if self._literal is None or scope.get("root_path"):
            return super().matches(scope)
        if scope.get("path") != self._literal:
            return Match.NONE, {}
        found = {"endpoint": self.endpoint, "path_params": {}, "route": self}
        return (Match.FULL if scope["method"] == self.method else Match.PARTIAL), found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of this route's path."""
        state = state_of(scope)
        state.route, state.dialect = self.path, self.dialect
        if scope["method"] != self.method:
            raise HTTPException(405, headers={"Allow": ", ".join(self.allowed)})
        await self.app(scope, receive, send)


class Table:
    """All routes; what is known of a request by its path, before or without a route."""

    def __init__(
        self,
        operations: Iterable[Operation],
        service: Service,
        *,
        examples: Mapping[str, str],
        prefixes: Mapping[str, Dialect],
        otherwise: Dialect,
        around: MiddlewareFactory,
    ) -> None:
        """Create a route for each path and method.

        Args:
            operations: of all dialects; on a shared path the first come first.
            service: see `Route`.
            examples: see `Route`.
            prefixes: the dialects of paths that no route has.
            otherwise: the dialect of all others.
            around: see `Route`.
        """
        shared: dict[tuple[str, str], list[Operation]] = {}
        for operation in operations:
            shared.setdefault((operation.path, operation.method), []).append(operation)
        self.routes = [Route(each, service, examples, around) for each in shared.values()]
        self._prefixes, self._otherwise = prefixes, otherwise
        self._by_path: dict[str, list[Route]] = {}
        for route in self.routes:
            self._by_path.setdefault(route.path, []).append(route)
        for routes in self._by_path.values():
            allowed = sorted({route.method for route in routes})
            for route in routes:
                route.allowed = [*allowed, "HEAD"] if "GET" in allowed else allowed

    def describe(self, document: dict[str, Any]) -> None:
        """Add the types of all answers to the OpenAPI document that FastAPI makes of the routes.

        FastAPI would make a validator of each, for each status of each route, before the first request is answered.
        """
        types = dict.fromkeys(each for route in self.routes for each in route.answers.values())
        adapters: list[tuple[Any, Literal["serialization"], TypeAdapter[Any]]] = [
            (each, "serialization", TypeAdapter(each)) for each in types
        ]
        found, definitions = TypeAdapter.json_schemas(adapters, ref_template="#/components/schemas/{model}")
        for route in self.routes:
            responses = document["paths"][route.path][route.method.lower()]["responses"]
            for status, answer in route.answers.items():
                content = responses[str(status)].setdefault("content", {}).setdefault("application/json", {})
                content["schema"] = found[answer, "serialization"]
        schemas = document["components"]["schemas"]
        document["components"]["schemas"] = dict(sorted({**schemas, **definitions["$defs"]}.items()))

    def find(self, path: str) -> list[Route]:
        """The routes of a path, one for each method."""
        if (found := self._by_path.get(path)) is not None:
            return found
        return next((routes for routes in self._by_path.values() if routes[0].path_regex.match(path)), [])

    def dialect(self, path: str) -> Dialect:
        """Whose errors a caller of this path understands; of a route's dialect, the one that is asked most."""
        if found := self.find(path):
            return next((route for route in found if route.operations[0].scores), found[0]).dialect
        for prefix, dialect in self._prefixes.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                return dialect
        return self._otherwise

    def hint(self, path: str) -> str | None:
        """What to ask instead of a path that is nowhere; None if nothing is near."""
        for gone, successor in _GONE.items():
            if path == gone or path.startswith(f"{gone}/"):
                return f"it is gone: ask {successor}"
        near = self.nearest(path)
        return None if near is None else f"did you mean {near}?"

    def nearest(self, path: str) -> str | None:
        """The route that a path which is nowhere was probably meant for, with its methods; None if none is near."""
        if len(path) > _LONGEST_PATH:
            return None
        known = {route.path for route in self.routes}
        meant = next((each for each in _readings(path) if any(r.path in known for r in self.find(each))), None)
        if meant is None:
            near = get_close_matches(path.lower(), [each for each in known if "{" not in each], 1, _CLOSE)
            meant = near[0] if near else None
        return None if meant is None else f"{' or '.join(sorted(r.method for r in self.find(meant)))} {meant}"

    def is_open(self, method: str, path: str) -> bool:
        """Whether anybody may ask this; a method that the path does not have is told so, like the others."""
        found = self._by_path.get(path, [])
        return any(r.operations[0].open for r in found) and not any(
            method == r.method and not r.operations[0].open for r in found
        )


def _readings(path: str) -> Iterator[str]:
    """What a path may stand for: with single slashes, in small letters, and with less in front of it."""
    parts = [part for part in path.split("/") if part]
    for cased in (parts, [part.lower() for part in parts]):
        for i in range(len(cased)):
            yield "/" + "/".join(cased[i:])


def _parameters(operations: Sequence[Operation], examples: Mapping[str, str]) -> Iterable[inspect.Parameter]:
    """What FastAPI describes: parameters of the path and the query, and the body."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    in_path = re.findall(r"{(\w+)}", operations[0].path)
    for name in in_path:
        known = all(each in examples for each in in_path)
        served: dict[str, Example] | None = {"served": {"value": examples[name]}} if known else None
        yield inspect.Parameter(name, keyword, annotation=Annotated[str, Path(openapi_examples=served)])
    for operation in operations:
        yield from (parameter for name, parameter in operation.parameters.items() if name not in in_path)
    requests = tuple(dict.fromkeys(each.request for each in operations if each.request is not None))
    if requests:
        shown: dict[str, Example] = {
            f"{request.__name__} {number}": {"value": example}
            for request in requests
            for number, example in enumerate(request.model_config["json_schema_extra"]["examples"], 1)
        }
        body: Any = Union[requests]  # noqa: UP007  # as many as there are
        yield inspect.Parameter("request", keyword, annotation=Annotated[body, Body(openapi_examples=shown)])


def _answers(operations: Sequence[Operation]) -> dict[int | str, Any]:
    """The types of the answers of all operations together, by status."""
    found: dict[int | str, list[Any]] = {}
    for operation in operations:
        if operation.answer_type is not None:
            found.setdefault(200, []).append(operation.answer_type)
    statuses = dict.fromkeys(status for operation in operations for status in operation.responses)
    for status in statuses:
        for operation in operations:
            answer = operation.responses.get(status, operation.responses.get("default", {}))
            if "model" in answer:
                found.setdefault(status, []).append(answer["model"])
    return {status: Union[tuple(dict.fromkeys(types))] for status, types in found.items()}  # noqa: UP007


def _responses(operations: Sequence[Operation]) -> dict[int | str, dict[str, Any]]:
    """What is said of the answers besides 200 of all operations together, by status."""
    joined: dict[int | str, dict[str, Any]] = {}
    described = [operation.responses for operation in operations]
    for status in dict.fromkeys(status for each in described for status in each):
        first = next(found for each in described if (found := each.get(status, each.get("default", {}))))
        joined[status] = {name: value for name, value in first.items() if name != "model"}
    return joined
