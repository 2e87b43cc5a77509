"""The playground at `/`: a page and its files, which ask the public routes of this service and nothing else.

The page refers to its files and to the routes by relative addresses, and so works under a path prefix as well.
"""

from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

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


def add_playground(app: FastAPI) -> None:
    """Serve the page at `/`, and its files below `/playground/`; to be called before other routes of `/` are added.

    Raises:
        FileNotFoundError: the installed package lacks the page.
    """
    html = (_FOLDER / "page.html").read_bytes()
    headers = {**_ASK, "content-security-policy": policy(html, inline_styles=False)}

    async def page(_: Request) -> Response:
        return HTMLResponse(html, headers=headers)

    # `http/edge.py` answers POST, which is of other families, and is named here so that a 405 names both methods.
    app.add_route(PAGE, page, ["GET", "POST"], include_in_schema=False)
    # This one is only for the description; the route above answers.
    app.add_api_route(PAGE, page, response_class=HTMLResponse, tags=["operations"], summary="A page for people")
    app.mount(_FILES, _Files(directory=_FOLDER / "files"), name="playground")


def is_playground(path: str) -> bool:
    """Whether a GET of this path is for the page or one of its files; they hold nothing secret and need no API key."""
    return path == PAGE or path.startswith(f"{_FILES}/")
