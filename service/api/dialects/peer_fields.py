"""Fields of other services' requests that change their answers, and what becomes of each of them here.

They are declared where they are read, in the requests of the dialects, by `Changes` and `AllowedValues` (`fields.py`);
this module collects them. `docs/dialects.md` has its table from here (`scripts/peer_fields.py`), and
`tests/dialects/test_peer_fields.py` sends every cell to its route.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, get_args

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from service.api.dialects.fields import AllowedValues, Changes
from service.api.operation import Operation


class FieldSupport(NamedTuple):
    """One field on one route."""

    path: str  # of the route
    key: str  # the field by which the path's requests of this type are known; empty where there is one type
    request: str  # name of that type
    field: str  # such as `parameters.top_k`; an element of a list has the place 0
    honoured: tuple[Any, ...]  # values, each of which changes the answer
    same: tuple[Any, ...]  # values that ask for what is done anyway
    refused: tuple[Any, ...]  # values, each of which is refused with 422 by the name of the field
    note: str  # what is not done, or why


def cells(operations: Iterable[Operation]) -> list[FieldSupport]:
    """The cells of these operations, in their order; strict requests, which refuse what they do not know, have none."""
    return [
        FieldSupport(
            operation.path,
            operation.key,
            operation.request.__name__,
            field,
            mark.values,
            mark.same if isinstance(mark, AllowedValues) else (info.default,),
            mark.refuses,
            mark.note,
        )
        for operation in operations
        if operation.request is not None and not operation.family.strict
        for field, info in fields_of(operation.request)
        for mark in info.metadata
        if isinstance(mark, Changes)
    ]


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
