"""The request and response formats of other services, so that their clients work unchanged (docs/dialects.md).

Each module is one family, with its requests, answers and errors. They share `scoring`, which uses the models,
`operation`, which selects by the body on a shared path, and `family`, the format of errors.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.params import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from service.api.body import Body
from service.api.dialects import cohere, hugging_face, jina, open_inference, openai, tei
from service.api.dialects.documentation import add_operation, show_examples
from service.api.dialects.family import ErrorFormat, own_error
from service.api.dialects.operation import Choice, Endpoint, Operation
from service.api.dialects.scoring import Scoring
from service.api.json_endpoint import JsonEndpoint
from service.service import Service

# The families of paths that are not POST routes: GET routes, and unknown paths with the prefix of a family.
_PREFIXES = (("/v1", openai.OPENAI), ("/v2", open_inference.OPEN_INFERENCE), ("/info", tei.TEI))


class Dialects:
    """All families, joined with our own POST routes on shared paths."""

    def __init__(self, service: Service, own: Iterable[JsonEndpoint]) -> None:
        """Make the routes; `own` are our own POST routes.

        Raises:
            ModelError: an alias in the settings is a model's own name, or names no model.
        """
        scoring = Scoring(service)
        self._service = service
        ours = {endpoint.path: endpoint for endpoint in own}
        by_path: dict[str, list[Operation]] = {}
        # On a shared path the first operation answers bodies that match none.
        for family in (jina, cohere, openai, hugging_face, tei):
            for operation in family.operations(scoring):
                by_path.setdefault(operation.path, []).append(operation)
        self._operations = [operation for operations in by_path.values() for operation in operations]
        self._choices = {path: Choice(operations, ours.get(path)) for path, operations in by_path.items()}
        self.endpoints: dict[str, Endpoint] = {**ours, **self._choices}
        self.router = APIRouter()
        for path in by_path.keys() - ours.keys():
            self.router.add_route(path, _called_by_edge, ["POST"], include_in_schema=False)
        getting = [family.routes(scoring) for family in (tei, openai, open_inference)]
        for router in getting:
            self.router.include_router(router)
        self.get_paths = [route.path for router in getting for route in router.routes if isinstance(route, APIRoute)]

    def error_format(self, path: str, body: Body) -> ErrorFormat:
        """The format of errors for a request, by its path and, on a shared path, its body."""
        if (choice := self._choices.get(path)) is not None:
            return choice.error_format(body)
        for prefix, family in _PREFIXES:
            if path == prefix or path.startswith(f"{prefix}/"):
                return family.error
        return own_error

    def describe(self, app: FastAPI, dependencies: Sequence[Depends]) -> dict[str, Any]:
        """The OpenAPI document of `app` with the POST requests of all families; slow."""
        described = FastAPI.openapi(app)
        for operation in self._operations:
            routes = [operation.route(dependencies)]
            add_operation(described, get_openapi(title=app.title, version=app.version, routes=routes))
        show_examples(described, self._named_in_paths())
        return described

    def _named_in_paths(self) -> dict[str, str]:
        """A served model, and one of its versions: of a model with versions, if there is one."""
        releases = [model.release for model in self._service.registry.values()]
        for release in releases:
            if release.version is not None:
                return {"model": release.id, "version": str(release.version)}
        return {"model": self._service.defaults.get("/similarity", releases[0].id)}


async def _called_by_edge(_: Request) -> Response:
    """Lets FastAPI answer other methods with 405; POST requests do not reach it."""
    raise AssertionError("http/edge.py calls the POST routes itself")
