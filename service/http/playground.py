"""The pages at `/` (the playground, with its files) and `/docs`, which ask the public routes of this service alone.

They refer to their files and to the routes by relative addresses, and so work under a path prefix as well. They hold
nothing secret and need no API key: where one is needed they ask the person for it, and keep it in memory only.
"""

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.api.dialects.own import OPERATIONS
from service.api.family import Responses
from service.api.operation import OperationResponse, ReadOperation
from service.http.pages import policy

PAGE, DOCS = "/", "/docs"
SWAGGER = "/static-offline-docs/"  # where fastapi-offline serves Swagger's files
_FILES = "/playground"
_FOLDER = Path(__file__).parents[1] / "playground"
# A browser asks each time whether a file has changed, so that no page runs with files of another version.
_ASK = {"cache-control": "no-cache"}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_ASK)
        return response


def page_operation() -> ReadOperation:
    """The page at `/`; raises like `docs_operation`."""
    return _page(PAGE, "page.html", "A page for people", inline_styles=False)


def docs_operation() -> ReadOperation:
    """The page at `/docs`: the routes, by Swagger.

    Raises:
        FileNotFoundError: the installed package lacks it.
    """
    return _page(DOCS, "docs.html", "The routes, for people", inline_styles=True)


def _page(path: str, name: str, summary: str, *, inline_styles: bool) -> ReadOperation:
    html = (_FOLDER / name).read_bytes()
    only_own = policy(html, inline_styles=inline_styles).encode()
    headers = ((b"cache-control", b"no-cache"), (b"content-security-policy", only_own))

    async def page() -> OperationResponse:
        return OperationResponse(html, media=b"text/html; charset=utf-8", headers=headers)

    described: Responses = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}
    return ReadOperation(path, page, OPERATIONS, summary, open=True, responses=described)


def add_files(app: FastAPI) -> None:
    """Serve the page's files below `/playground/`."""
    app.mount(_FILES, _Files(directory=_FOLDER / "files"), name="playground")


def is_playground(path: str) -> bool:
    """Whether a path is of one of the page's files; they hold nothing secret and need no API key."""
    return path.startswith(f"{_FILES}/")
