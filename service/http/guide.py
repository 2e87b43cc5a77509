"""The documentation at /guide: the folder that `make docs` builds."""

from os import PathLike, stat_result
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PATH = "/guide"


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
    return path == PATH or path.startswith(f"{PATH}/")


def add_guide(app: FastAPI, folder: Path) -> None:
    """Serve the built documentation at /guide/."""

    @app.get(PATH, include_in_schema=False)
    async def guide(request: Request) -> RedirectResponse:
        # Relative, so that it also holds behind a proxy that serves this under a prefix.
        return RedirectResponse(PATH.removeprefix("/") + "/")

    app.mount(PATH, _Pages(directory=folder, html=True))
