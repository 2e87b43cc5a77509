"""The service in the words of five others: clients written for those work here unchanged.

Each module is one family: its requests, its answers, its errors. What they share: `scoring` asks the models,
`operation` chooses by the body where families share a path, `family` words errors. `docs/dialects.md` has the table.
"""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from service.dialects import cohere, jina, open_inference, openai, tei
from service.dialects.documentation import add_alternative
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
        self._choices = {path: Choice(operations, ours.get(path)) for path, operations in by_path.items()}
        self.endpoints: list[Endpoint] = [*(ours | self._choices).values()]
        # FastAPI describes one operation of a path; `describe` adds the others.
        self.router = APIRouter()
        self._also: list[APIRoute] = []
        for path, operations in by_path.items():
            routes = [operation.route() for operation in operations]
            first = 0 if path in ours else 1
            self.router.routes += routes[:first]
            self._also += routes[first:]
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

    def describe(self, app: FastAPI) -> dict[str, Any]:
        """The application's OpenAPI, with everything that a shared path answers."""
        described = FastAPI.openapi(app)
        for route in self._also:
            add_alternative(described, get_openapi(title=app.title, version=app.version, routes=[route]))
        return described
