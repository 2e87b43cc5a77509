"""The table of `docs/dialects.md`: for each kind of request what becomes of the fields that change an answer."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from service.api.dialects.peer_fields import FieldSupport, cells
from service.api.route import Route
from service.app import create_app
from service.settings import Settings

_MODELS = Path(__file__).resolve().parents[1] / "models"
_HEAD = "| routes | honoured | refused with 422 by name, here with values that are |\n|---|---|---|"


def served() -> list[FieldSupport]:
    """The cells of all routes of a service."""
    app = create_app(Settings(models_dir=(_MODELS,), models=("avg-sick",), playground=False))
    routes = [route for route in app.app.routes if isinstance(route, Route)]
    return cells(operation for route in routes for operation in route.operations)


def written(found: Iterable[FieldSupport]) -> str:
    """The table in Markdown; routes with the same request share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    of_request: dict[tuple[str, str], list[FieldSupport]] = {}
    for cell in found:
        where = f"`{cell.path}`" + (f" with `{cell.key}`" if cell.key else "")
        of_request.setdefault((where, cell.request), []).append(cell)
    for (where, _), of_path in of_request.items():
        rows.setdefault((_honoured(of_path), _refused(of_path)), []).append(where)
    lines = [f"| {', '.join(where)} | {honoured} | {refused} |" for (honoured, refused), where in rows.items()]
    return "\n".join([_HEAD, *lines])


def table() -> str:
    """The table, from a service with one model: it does not depend on which."""
    return written(served())


def _honoured(of_path: Iterable[FieldSupport]) -> str:
    return ", ".join(
        f"`{cell.field}`{f' ({cell.note})' if cell.note and not cell.refused else ''}"
        for cell in of_path
        if cell.honoured
    )


def _refused(of_path: Iterable[FieldSupport]) -> str:
    return ", ".join(f"`{cell.field}`: {_values(cell.refused)}" for cell in of_path if cell.refused)


def _values(values: Iterable[Any]) -> str:
    return " ".join(f"`{json.dumps(value)}`" for value in values)
