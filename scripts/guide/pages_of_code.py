"""Reference pages that are read from the code: errors, the manifest, the command lines."""

import inspect
import io
import os
import re
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from typing import Any
from unittest import mock

import typer
from typer.cli import get_docs_for_click

from core.manifest import Manifest
from service.errors import RequestError
from training.markdown import table

_PAGE_OF_DOCS = re.compile(r"docs/([\w/-]+\.md)")


def sentence(text: str) -> str:
    """A description from the code: in one line, with links to the pages it names."""
    one_line = " ".join(text.split())
    return _PAGE_OF_DOCS.sub(lambda found: f"[{found[1]}](../{found[1]})", one_line)


def errors_page() -> str:
    """Every error of our own routes, and the exceptions of the client."""
    kinds = sorted(_below(RequestError), key=lambda kind: (kind.status, kind.code))
    rows = [
        (str(kind.status), f"`{kind.code}`", sentence(inspect.getdoc(kind) or ""))
        for kind in kinds
        if kind.__name__ != "HttpError"
    ]
    return "\n".join(
        [
            "# Errors\n",
            "Our own routes answer every error in one shape. `field` is a path such as `pairs.3.a`, `limit` the "
            "number that was exceeded; both are null where they do not apply. `request_id` is also in the header "
            "`X-Request-Id` and in the log. Written from `service/errors.py`.\n",
            "```json",
            '{"error": {"code": "too_large", "message": "...", "field": "pairs.3.a", "limit": 100000, "request_id": '
            '"..."}}',
            "```\n",
            table(("status", "code", "when"), rows) + "\n",
            "Besides these the framework answers 404 `not_found` and 405 `method_not_allowed` for unknown paths and "
            "methods. 429 and 503 have `Retry-After` and `retry-after-ms`.\n",
            "Routes of other families answer in those families' formats: [other services' "
            "clients](../dialects.md#errors). The exceptions of the Python client: [the client](../client.md).\n",
        ]
    )


def _below(kind: type[RequestError]) -> set[type[RequestError]]:
    return {found for below in kind.__subclasses__() for found in ({below} | _below(below))}


def manifest_page() -> str:
    """Every field of `manifest.json`."""
    schema = Manifest.model_json_schema()
    parts = [
        "# manifest.json\n",
        "The description of a model in its folder. `python -m training publish` writes it, the service reads and "
        "checks it. Unknown keys are refused. How folders and versions are laid out: [models](../models.md). Written "
        "from `core/manifest.py`.\n",
        _fields(schema),
    ]
    for name, part in sorted(schema["$defs"].items()):
        if "properties" in part:
            parts += [f"## {name}\n", f"{sentence(part.get('description', ''))}\n", _fields(part)]
    return "\n".join(parts)


def _fields(schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (f"`{name}`", _type(part), "yes" if name in required else "", sentence(part.get("description", "")))
        for name, part in schema["properties"].items()
    ]
    return table(("field", "type", "required", "what"), rows) + "\n"


def _type(part: Mapping[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return name if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if "const" in part:
        return f"`{part['const']}`"
    if "enum" in part:
        return " or ".join(f"`{value}`" for value in part["enum"])
    for key in ("anyOf", "oneOf"):
        if key in part:
            return " or ".join(_type(one) for one in part[key] if one.get("type") != "null")
    if part.get("type") == "array":
        items = part.get("prefixItems")
        return f"list of {_type(part['items'])}" if items is None else f"[{', '.join(map(_type, items))}]"
    if part.get("type") == "object":
        values = [part[key] for key in ("additionalProperties",) if isinstance(part.get(key), dict)]
        values += part.get("patternProperties", {}).values()
        return f"object of {_type(values[0])}" if values else "object"
    bounds = [f"{word} {part[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in part]
    return " ".join([str(part.get("type", "any")), *bounds])


def commands_page() -> str:
    """What every command says about itself, as Typer writes it in Markdown."""
    # Imported here: the command line of training brings torch along.
    from papers.__main__ import app as papers
    from semblance.cli.app import app as semblance
    from training.__main__ import app as training
    from workbench.__main__ import app as workbench

    parts = [
        "# Command lines\n",
        "What each command says with `--help`. Examples: [the client and the command line](../client.md), "
        "[reproducing](../reproducing.md).\n",
    ]
    for program, app in (
        ("semblance", semblance),
        ("python -m training", training),
        ("python -m papers", papers),
        ("python -m workbench", workbench),
    ):
        command = typer.main.get_command(app)
        parts.append(get_docs_for_click(obj=command, ctx=typer.Context(command), name=program, indent=1))
    parts += ["## python -m service\n", "```text", _service_help(), "```\n"]
    return "\n".join(parts)


def _service_help() -> str:
    from service.__main__ import main

    shown = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}), redirect_stdout(shown), suppress(SystemExit):
        main(["--help"])
    return shown.getvalue().strip()
