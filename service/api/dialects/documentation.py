"""OpenAPI of paths with more than one type of request, which FastAPI does not describe."""

from typing import Any

Described = dict[str, Any]


def add_operation(described: Described, addition: Described) -> None:
    """Add the only operation of one OpenAPI document to another.

    If the path and method are there already, bodies and answers become "any of" both.
    """
    ((path, operations),) = addition["paths"].items()
    ((method, added),) = operations.items()
    described["components"]["schemas"] |= addition["components"]["schemas"]
    found = described["paths"].setdefault(path, {}).setdefault(method, added)
    if found is added:
        return
    found["tags"] = [*found["tags"], *(tag for tag in added["tags"] if tag not in found["tags"])]
    found["summary"] = f"{found['summary']} / {added['summary']}"
    _either(found["requestBody"], added["requestBody"])
    default = added["responses"]["default"]
    for status, response in found["responses"].items():
        _either(response, added["responses"].get(status, default))
    found["responses"].setdefault("default", default)


def _either(part: Described, other: Described) -> None:
    """Make the JSON schema of a body "any of" it and another."""
    content, also = (described["content"]["application/json"] for described in (part, other))
    schemas: list[Described] = []
    for schema in (content["schema"], also["schema"]):
        schemas += (one for one in schema.get("anyOf", [schema]) if one not in schemas)
    content["schema"] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
