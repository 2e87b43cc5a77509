"""The playground at `/`: a page and its files, which ask the public routes of this service and nothing else.

The page refers to its files and to the routes by relative addresses, and so works under a path prefix as well.
"""

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.api.dialects.own import OPERATIONS
from service.api.family import Responses
from service.api.operation import Look, Reply
from service.http.pages import policy

PAGE = "/"
_FILES = "/playground"
_FOLDER = Path(__file__).parents[1] / "playground"
# A browser asks each time whether a file has changed, so that no page runs with files of another version.
_ASK = {"cache-control": "no-cache"}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_ASK)
        return response


def page_operation() -> Look:
    """The page at `/`.

    Raises:
        FileNotFoundError: the installed package lacks it.
    """
    html = (_FOLDER / "page.html").read_bytes()
    only_own = policy(html, inline_styles=False).encode()
    headers = ((b"cache-control", b"no-cache"), (b"content-security-policy", only_own))

    async def page() -> Reply:
        return Reply(html, media=b"text/html; charset=utf-8", headers=headers)

    described: Responses = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}
    return Look(PAGE, page, OPERATIONS, "A page for people", open=True, responses=described)


def add_files(app: FastAPI) -> None:
    """Serve the page's files below `/playground/`."""
    app.mount(_FILES, _Files(directory=_FOLDER / "files"), name="playground")


def is_playground(path: str) -> bool:
    """Whether a path is of one of the page's files; they hold nothing secret and need no API key."""
    return path.startswith(f"{_FILES}/")
