"""OpenAPI of paths with more than one type of request, which FastAPI does not describe, and examples to send."""

import re
from collections.abc import Mapping
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


def show_examples(described: Described, parameters: Mapping[str, str]) -> None:
    """Add examples that work when they are sent as they stand.

    Args:
        described: the OpenAPI document. Each body gets the examples of every request that its path takes, by name.
        parameters: the value that an example gives to each parameter of a path. A path with another parameter gets no
            example.
    """
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        names = re.findall(r"{(\w+)}", path)
        for operation in operations.values():
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                content["examples"] = _named_examples(content["schema"], schemas)
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and all(name in parameters for name in names):
                    parameter["example"] = parameters[parameter["name"]]


def _named_examples(schema: Described, schemas: Mapping[str, Described]) -> dict[str, Described]:
    found: dict[str, Described] = {}
    for one in schema.get("anyOf", [schema]):
        name = one["$ref"].rpartition("/")[2]
        for number, example in enumerate(schemas[name]["examples"], 1):
            found[f"{name} {number}"] = {"value": example}
    return found
