"""The pages for people: the playground at `/` with its files, `/docs`, and the documentation at /guide.

They refer to their files and to the routes by relative addresses, and so work under a path prefix as well. They hold
nothing secret and need no API key: where one is needed they ask the person for it, and keep it in memory only. The
documentation is the folder that `make docs` builds.
"""

from os import PathLike, stat_result
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.api.dialects.own import OPERATIONS
from service.api.operation import OperationResponse, ReadOperation, Responses
from service.http.middleware import policy

PAGE, DOCS = "/", "/docs"
SWAGGER = "/static-offline-docs/"  # where fastapi-offline serves Swagger's files
_FILES = "/playground"
_FOLDER = Path(__file__).parents[1] / "playground"
# A browser asks each time whether a file has changed, so that no page runs with files of another version.
_ASK = {"cache-control": "no-cache"}
_GUIDE = "/guide"


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


class _Pages(StaticFiles):
    """Static files, HTML pages in one piece: their Content-Security-Policy has a hash of each script in them."""

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """One file, or 304 where the browser has it."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if not isinstance(response, FileResponse) or response.media_type != "text/html":
            return response
        kept = {name: response.headers[name] for name in ("etag", "last-modified")}
        return Response(Path(full_path).read_bytes(), status_code, kept, "text/html")


def is_guide(path: str) -> bool:
    """Whether a GET of this path is for the documentation, which holds nothing secret and needs no API key."""
    return path == _GUIDE or path.startswith(f"{_GUIDE}/")


def add_guide(app: FastAPI, folder: Path) -> None:
    """Serve the built documentation at /guide/."""

    @app.get(_GUIDE, include_in_schema=False)
    async def guide(request: Request) -> RedirectResponse:
        # Relative, so that it also holds behind a proxy that serves this under a prefix.
        return RedirectResponse(_GUIDE.removeprefix("/") + "/")

    app.mount(_GUIDE, _Pages(directory=folder, html=True))
