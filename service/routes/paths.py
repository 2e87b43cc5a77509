"""What is known of a request by its path alone, before or without a route: for errors, keys and metrics."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Route

_LONGEST_PATH = 200  # characters of a path that is nowhere, for which a near one is looked for
_CLOSE = 0.8  # of difflib's ratio
# Of a route, in the OpenAPI document: anybody may ask, without a key and as often as they like.
OPEN: dict[str, list[object]] = {"security": []}
# Paths that an earlier version had, those below them too, and what does the same.
_GONE = {
    "/pooling": "POST /v1/embeddings",
    "/infinity/embeddings": "POST /v1/embeddings",
    "/infinity/rerank": "POST /v1/rerank",
    "/v2/health": "GET /health/ready",
    "/v2/models": "POST /v1/embeddings or /v2/rerank",
    "/embeddings": "POST /v1/embeddings",
    "/rerank": "POST /v1/rerank, or /tei/rerank with texts",
    "/score": "POST /openai/v1/score",
    "/v1/score": "POST /openai/v1/score",
    "/v1/embed": "POST /cohere/v1/embed",
    "/v1/tokenize": "POST /cohere/v1/tokenize",
    "/predict": "POST /tei/predict",
    "/tokenize": "POST /tei/tokenize",
    "/info": "GET /tei/info",
}


class Paths:
    """The paths of all routes."""

    def __init__(self, routes: Sequence[BaseRoute], files: tuple[str, ...]) -> None:
        """Store the routes of an application, those of its routers too; mounted files are none.

        Args:
            routes: of the application.
            files: folders whose paths, but those of routes, need no key and count for no limit; they end with /.
        """
        self.files = files
        found = [each for each in iter_route_contexts(routes) if isinstance(each.original_route, Route)]
        self._routes = [each.original_route for each in found if isinstance(each.original_route, Route)]
        # What anybody may ask.
        self.open = frozenset(each.path for each in found if getattr(each, "openapi_extra", None) is OPEN)
        # What asks a model, with POST: its work, its time and its body are limited. None has a parameter.
        self.scoring = frozenset(each.path for each in self._routes if getattr(each, "body_field", None) is not None)
        self.all = list(dict.fromkeys(route.path_format for route in self._routes))

    def find(self, path: str) -> str | None:
        """The path of the route that a path is of, such as `/v1/models/{model}`; None if it is nowhere."""
        found = self._of(path)
        return None if found is None else found.path_format

    def hint(self, path: str) -> str | None:
        """What to ask instead of a path that is nowhere, or has no such method; None if nothing is near."""
        if path == "/":
            return "clients of TEI ask POST /tei"
        for gone, successor in _GONE.items():
            if path == gone or path.startswith(f"{gone}/"):
                return f"it is gone: ask {successor}"
        near = self._nearest(path)
        return None if near is None else f"did you mean {near}?"

    def _nearest(self, path: str) -> str | None:
        """The route that was probably meant, with its method."""
        if len(path) > _LONGEST_PATH:
            return None
        meant = next((each for each in _readings(path) if self._of(each) is not None), None)
        if meant is None:
            near = get_close_matches(path.lower(), [each for each in self.all if "{" not in each], 1, _CLOSE)
            meant = near[0] if near else None
        route = None if meant is None else self._of(meant)
        return None if route is None else f"{min(route.methods or ['GET'])} {meant}"

    def _of(self, path: str) -> Route | None:
        return next((each for each in self._routes if each.path_regex.match(path)), None)


def _readings(path: str) -> Iterator[str]:
    """What a path may stand for: with single slashes, in small letters, and with less in front of it."""
    parts = [part for part in path.split("/") if part]
    for cased in (parts, [part.lower() for part in parts]):
        for i in range(len(cased)):
            yield "/" + "/".join(cased[i:])
