"""The pages for people: the playground at `/` with its files, `/docs`, and the documentation at /guide.

They refer to their files and to the routes by relative addresses, and so work under a path prefix as well. They hold
nothing secret and need no API key: where one is needed they ask the person for it, and keep it in memory only. The
documentation is the folder that `make docs` builds.
"""

import base64
import hashlib
import re
from functools import cache
from os import PathLike, stat_result
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

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


def _headers(html: bytes, *, inline_styles: bool = True) -> dict[str, str]:
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


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        # A browser asks each time whether a file has changed, so that no page runs with files of another version.
        response.headers["cache-control"] = "no-cache"
        return response


_HTML: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}
router, docs_router = (router_for(OURS, "operations") for _ in range(2))


@router.get(PAGE, summary="A page for people", responses=_HTML, response_class=Response, openapi_extra=OPEN)
async def playground() -> Response:
    """Show the page on which a person tries the models."""
    return _page("page.html", inline_styles=False)


@docs_router.get(DOCS, summary="The routes, for people", responses=_HTML, response_class=Response, openapi_extra=OPEN)
async def docs() -> Response:
    """Show the routes, by Swagger."""
    return _page("docs.html", inline_styles=True)


def _page(name: str, *, inline_styles: bool) -> Response:
    html, headers = _html(name, inline_styles=inline_styles)
    return HTMLResponse(html, headers=headers)


@cache
def _html(name: str, *, inline_styles: bool) -> tuple[bytes, dict[str, str]]:
    """A page and its headers: a policy has a hash of each script, which takes as long as all else of an answer."""
    html = (_FOLDER / name).read_bytes()
    return html, {"cache-control": "no-cache", **_headers(html, inline_styles=inline_styles)}


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
        html = Path(full_path).read_bytes()
        return Response(html, status_code, kept | _headers(html), "text/html")


def add_pages(app: FastAPI, settings: Settings) -> tuple[str, ...]:
    """Serve the page at `/` with its files, `/docs`, and the documentation at /guide/, where it was built.

    Returns the folders of these and of Swagger's files: they hold nothing secret and need no API key.
    """
    app.mount(_SWAGGER, _Pages(packages=[("fastapi_offline", "static")]), name="swagger")
    shown: tuple[str, ...] = (f"{_SWAGGER}/",)
    app.include_router(docs_router)
    if settings.playground:
        app.include_router(router)
        app.mount(_FILES, _Files(directory=_FOLDER / "files"), name="playground")
        shown += (f"{_FILES}/",)
    if (GUIDE_FOLDER / "index.html").is_file():

        @app.get(_GUIDE, include_in_schema=False, openapi_extra=OPEN)
        async def guide(request: Request) -> RedirectResponse:
            # Relative, so that it also holds behind a proxy that serves this under a prefix.
            return RedirectResponse(_GUIDE.removeprefix("/") + "/")

        app.mount(_GUIDE, _Pages(directory=GUIDE_FOLDER, html=True))
        shown += (f"{_GUIDE}/",)
    return shown
