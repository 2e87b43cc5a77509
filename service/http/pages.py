"""The pages for people: the playground at `/` with its files, `/docs`, and the documentation at /guide.

They refer to their files and to the routes by relative addresses, and so work under a path prefix as well. They hold
nothing secret and need no API key: where one is needed they ask the person for it, and keep it in memory only. The
documentation is the folder that `make docs` builds.
"""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from service.routes.dialects import OURS
from service.routes.paths import OPEN
from service.routes.routing import router_for
from service.settings import Settings

PAGE, DOCS = "/", "/docs"
_SWAGGER = "/static-offline-docs"  # Swagger's files, which the package fastapi-offline has
_FILES = "/playground"
_FOLDER = Path(__file__).parents[1] / "playground"
_GUIDE = "/guide"
GUIDE_FOLDER = Path(__file__).parents[2] / "build/site"  # where `make docs` builds it, in a checkout


_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_POLICY = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self'{styles}; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def _headers(html: bytes, *, inline_styles: bool) -> dict[str, str]:
    """The headers of a page, by which only its own scripts run, and it connects only to this host."""
    digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _INLINE_SCRIPT.findall(html)]
    hashes = "".join(f" 'sha256-{digest}'" for digest in digests)
    return {
        "content-security-policy": _POLICY.format(hashes=hashes, styles=" 'unsafe-inline'" if inline_styles else ""),
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "x-frame-options": "DENY",
    }


class _Files:
    """The files of a folder, answered from memory: however many do not read their answer, it is held once."""

    def __init__(self, folder: Path) -> None:
        """List them; links that lead out of the folder are none."""
        top = folder.resolve()
        files = (each for each in folder.rglob("*") if each.is_file() and each.resolve().is_relative_to(top))
        self._files = {each.relative_to(folder).as_posix(): each for each in files}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for one of them, or with the index for the folder itself."""
        if scope["method"] != "GET":  # HEAD comes as GET
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        path = self._files.get(scope["path"].removeprefix(f"{scope['root_path']}/") or "index.html")
        if path is None:
            raise HTTPException(404)
        await _answer(path, Request(scope))(scope, receive, send)


_HTML: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}
router, docs_router = (router_for(OURS, "operations") for _ in range(2))


@router.get(PAGE, summary="A page for people", responses=_HTML, response_class=Response, openapi_extra=OPEN)
async def playground(request: Request) -> Response:
    """Show the page on which a person tries the models."""
    return _answer(_FOLDER / "page.html", request, inline_styles=False)


@docs_router.get(DOCS, summary="The routes, for people", responses=_HTML, response_class=Response, openapi_extra=OPEN)
async def docs(request: Request) -> Response:
    """Show the routes, by Swagger."""
    return _answer(_FOLDER / "docs.html", request)


def _answer(path: Path, request: Request, *, inline_styles: bool = True) -> Response:
    """A file; or 304, where the browser has it."""
    whole, unchanged = _read(path, inline_styles)
    return unchanged if whole.headers["etag"] in request.headers.get("if-none-match", "") else whole


@cache
def _read(path: Path, inline_styles: bool) -> tuple[Response, Response]:
    """A file as it is answered, and that it is unchanged; a browser asks each time, and mixes no two versions."""
    content, kind = path.read_bytes(), guess_type(path.name)[0] or "application/octet-stream"
    headers = {"cache-control": "no-cache", "etag": f'"{hashlib.sha256(content).hexdigest()}"'}
    if kind == "text/html":
        headers |= _headers(content, inline_styles=inline_styles)
    return Response(content, headers=headers, media_type=kind), Response(status_code=304, headers=headers)


def add_pages(app: FastAPI, settings: Settings) -> tuple[str, ...]:
    """Serve the page at `/` with its files, `/docs`, and the documentation at /guide/, where it was built.

    Returns the folders of these and of Swagger's files: they hold nothing secret and need no API key.
    """
    app.mount(_SWAGGER, _Files(Path(str(files("fastapi_offline"))) / "static"), name="swagger")
    shown: tuple[str, ...] = (f"{_SWAGGER}/",)
    app.include_router(docs_router)
    if settings.playground:
        app.include_router(router)
        app.mount(_FILES, _Files(_FOLDER / "files"), name="playground")
        shown += (f"{_FILES}/",)
    if (GUIDE_FOLDER / "index.html").is_file():

        @app.get(_GUIDE, include_in_schema=False, openapi_extra=OPEN)
        async def guide(request: Request) -> RedirectResponse:
            # Relative, so that it also holds behind a proxy that serves this under a prefix.
            return RedirectResponse(_GUIDE.removeprefix("/") + "/")

        app.mount(_GUIDE, _Files(GUIDE_FOLDER))
        shown += (f"{_GUIDE}/",)
    return shown
