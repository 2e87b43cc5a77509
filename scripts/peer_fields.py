"""The table of `docs/dialects.md`: for each kind of request what becomes of the fields that change an answer.

They are declared where they are read, in the requests of `service/routes/`, by `ChangesAnswer` and `AllowedValues`
(`fields.py`). `tests/dialects/test_peer_fields.py` sends every cell to its route.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from service.app import create_app
from service.routes.fields import AllowedValues, ChangesAnswer, ForeignRequest
from service.settings import Settings

_MODELS = Path(__file__).resolve().parents[1] / "models"
_HEAD = "| routes | honoured | refused with 422 by name, here with values that are |\n|---|---|---|"


class FieldSupport(NamedTuple):
    """One field on one route."""

    path: str  # of the route
    request: str  # name of the type of its requests
    field: str  # such as `parameters.top_k`; an element of a list has the place 0
    honoured: tuple[Any, ...]  # values, each of which changes the answer
    same: tuple[Any, ...]  # values that ask for what is done anyway
    refused: tuple[Any, ...]  # values, each of which is refused with 422 by the name of the field
    note: str  # what is not done, or why


def served() -> list[FieldSupport]:
    """The cells of all routes of a service."""
    app = create_app(Settings(models_dir=(_MODELS,), models=("avg-sick",), playground=False))
    return [
        FieldSupport(
            path,
            request.__name__,
            field,
            mark.values,
            mark.same if isinstance(mark, AllowedValues) else (info.default,),
            mark.refuses,
            mark.note,
        )
        for path, request in requests_of(app)
        for field, info in fields_of(request)
        for mark in info.metadata
        if isinstance(mark, ChangesAnswer)
    ]


def requests_of(app: FastAPI) -> Iterator[tuple[str, type[ForeignRequest]]]:
    """The paths for other services' clients, with the types of their requests."""
    for route in iter_route_contexts(app.routes):
        field = getattr(route, "body_field", None)
        if route.path is not None and field is not None and issubclass(field.field_info.annotation, ForeignRequest):
            yield route.path, field.field_info.annotation


def fields_of(request: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every field of a request by its path, with those of the objects in it."""
    for name, info in request.model_fields.items():
        alias = info.validation_alias
        for each in alias.choices if isinstance(alias, AliasChoices) else (name,):
            yield f"{prefix}{each}", info
        for inner, place in _objects(info.annotation):
            yield from fields_of(inner, f"{prefix}{name}.{place}")


def _objects(annotation: Any, place: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """The types of objects in a field, and where in it they are."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, place
    for each in get_args(annotation):
        yield from _objects(each, "0." if getattr(annotation, "__origin__", None) is list else place)


def written(found: Iterable[FieldSupport]) -> str:
    """The table in Markdown; routes with the same request share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    of_request: dict[tuple[str, str], list[FieldSupport]] = {}
    for cell in found:
        of_request.setdefault((f"`{cell.path}`", cell.request), []).append(cell)
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
