"""The service in the words of five others: clients written for those work here unchanged.

Each module is one family: its requests, its answers, its errors. What they share: `scoring` asks the models,
`operation` chooses by the body where families share a path, `family` words errors. `docs/dialects.md` has the table.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.params import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from service.dialects import cohere, jina, open_inference, openai, tei
from service.dialects.documentation import add_operation
from service.dialects.family import Wording, own_words
from service.dialects.operation import Choice, Endpoint, Operation
from service.dialects.scoring import Scoring
from service.json_endpoint import JsonEndpoint
from service.state import Service

# Whose errors a path has that is no POST route: GET routes, and what is under a family's prefix and nowhere.
_PREFIXES = (("/v1", openai.OPENAI), ("/v2", open_inference.OPEN_INFERENCE), ("/info", tei.TEI))


class Dialects:
    """All families, joined with our own POST routes where they share a path."""

    def __init__(self, service: Service, own: Iterable[JsonEndpoint]) -> None:
        """Make their routes.

        Args:
            service: what answers.
            own: our own POST routes.

        Raises:
            ModelError: an alias of the settings is a model's own name, or names no model.
        """
        scoring = Scoring(service)
        ours = {endpoint.path: endpoint for endpoint in own}
        by_path: dict[str, list[Operation]] = {}
        # On a path of several the first answers what is nobody's.
        for family in (jina, cohere, openai, tei):
            for operation in family.operations(scoring):
                by_path.setdefault(operation.path, []).append(operation)
        self._operations = [operation for operations in by_path.values() for operation in operations]
        self._choices = {path: Choice(operations, ours.get(path)) for path, operations in by_path.items()}
        self.endpoints: list[Endpoint] = [*(ours | self._choices).values()]
        self.router = APIRouter()
        for path in by_path.keys() - ours.keys():
            self.router.add_route(path, _at_the_door, ["POST"], include_in_schema=False)
        getting = [family.routes(scoring) for family in (tei, openai, open_inference)]
        for router in getting:
            self.router.include_router(router)
        self.get_paths = [route.path for router in getting for route in router.routes if isinstance(route, APIRoute)]

    def wording(self, path: str, body: bytes) -> Wording:
        """How to tell the sender of a request that it failed: by its path and, where several share that, its body."""
        if (choice := self._choices.get(path)) is not None:
            return choice.wording(body)
        for prefix, family in _PREFIXES:
            if path == prefix or path.startswith(f"{prefix}/"):
                return family.words
        return own_words

    def describe(self, app: FastAPI, dependencies: Sequence[Depends]) -> dict[str, Any]:
        """The application's OpenAPI with the POST requests of all families; made when it is asked for, being slow.

        Args:
            app: whose routes FastAPI describes by itself.
            dependencies: of every route here, such as a field for the API key.
        """
        described = FastAPI.openapi(app)
        for operation in self._operations:
            routes = [operation.route(dependencies)]
            add_operation(described, get_openapi(title=app.title, version=app.version, routes=routes))
        return described


async def _at_the_door(_: Request) -> Response:
    """For FastAPI to know that a path is there, and answer other methods with 405: POST does not come so far."""
    raise AssertionError("the door calls the POST routes itself")
