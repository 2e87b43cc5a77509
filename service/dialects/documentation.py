"""OpenAPI of paths that answer more than one kind of request: FastAPI describes one, the others are added here."""

from typing import Any

Described = dict[str, Any]


def add_alternative(described: Described, alternative: Described) -> None:
    """Add the only operation of one OpenAPI document to the operation of the same path in another.

    Bodies and answers become "any of"; an error that the first describes may have the alternative's default shape.
    """
    ((path, operations),) = alternative["paths"].items()
    ((method, added),) = operations.items()
    found = described["paths"][path][method]
    found["tags"] = [*found["tags"], *(tag for tag in added["tags"] if tag not in found["tags"])]
    found["summary"] = f"{found['summary']} / {added['summary']}"
    _either(found["requestBody"], added["requestBody"])
    default = added["responses"]["default"]
    for status, response in found["responses"].items():
        _either(response, added["responses"].get(status, default))
    found["responses"].setdefault("default", default)
    described["components"]["schemas"] |= alternative["components"]["schemas"]


def _either(part: Described, other: Described) -> None:
    """Widen the JSON schema of a body by another's."""
    content, also = (described["content"]["application/json"] for described in (part, other))
    schemas: list[Described] = []
    for schema in (content["schema"], also["schema"]):
        schemas += (one for one in schema.get("anyOf", [schema]) if one not in schemas)
    content["schema"] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
