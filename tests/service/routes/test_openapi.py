"""What /openapi.json says of every route, and every route against it: no 5xx, and nothing that it does not say.

Schemathesis makes up requests from the OpenAPI document, such as fit it and such as do not. `TEST_EFFORT` has it look
longer: see `tests/harness/effort.py`.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.openapi.loaders import from_asgi
from schemathesis.schemas import BaseSchema

from core import answers, status
from service.app import create_app
from service.settings import Settings
from tests.harness.effort import EFFORT
from tests.harness.requests import GOOD, OPEN
from tests.harness.service import Client, let_in

KEY = "correct horse battery"
OWN = {"RankResponse": "Ranking"}  # whose name in the documentation is another
pytestmark = pytest.mark.timeout(600)  # half a minute, where nobody else wants the machine


def described(models: Path, examples: int, **settings: object) -> BaseSchema:
    """A service's own description, with so many made-up requests for each of its operations."""
    app = create_app(Settings(models_dir=models, **settings))  # type: ignore[arg-type]
    options: dict[str, Any] = {
        "generation": {"max-examples": examples * EFFORT, "deterministic": EFFORT == 1},
        # A text that says nothing, or a model that is not there, fits the description and is refused all the same.
        "checks": {"positive_data_acceptance": {"enabled": False}},
        "phases": {"coverage": {"enabled": EFFORT > 1}},  # the boundaries of each field
        "warnings": False,
    }
    config = SchemathesisConfig.from_dict(options)
    return from_asgi("/openapi.json", app, config=config, headers={"Authorization": f"Bearer {KEY}"})


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "prefixItems" in schema:
        return f"({', '.join(map(_type, schema['prefixItems']))})"
    if "items" in schema:
        return f"[{_type(schema['items'])}]"
    return str(schema.get("const", schema.get("type", "any")))


def _body(described: dict[str, Any]) -> str:
    types = {media: _type(body.get("schema", {})) for media, body in described.get("content", {}).items()}
    return ", ".join(kind if media == "application/json" else f"{kind} as {media}" for media, kind in types.items())


def _operation(described: dict[str, Any]) -> str:
    """What is asked of path, query and body, and the bodies of answers by their statuses; ? is of what may be left."""
    asked = [
        f"{each['name']}{'' if each['required'] else '?'} in {each['in']}: {_type(each['schema'])}"
        for each in described.get("parameters", ())
    ]
    if "requestBody" in described:
        asked.append(f"{_body(described['requestBody'])}{'' if described['requestBody']['required'] else '?'}")
    bodies: dict[str, list[str]] = {}
    for code, answer in described["responses"].items():
        bodies.setdefault(_body(answer), []).append(code)
    said = [f"{' '.join(codees)} {body}" for body, codees in bodies.items()]
    return f"({', '.join(described['tags'])}) {', '.join(asked) or '-'} -> {'; '.join(said)}"


@pytest.mark.anyio
async def test_the_documentation_says_what_each_path_takes_and_answers(lasting: Client) -> None:
    """Beside `documented.txt`: the operations, and those of our own answers that may lack a field."""
    api = (await lasting.get("/openapi.json")).json()
    said = [
        f"{method.upper()} {path} {_operation(described)}"
        for path, methods in api["paths"].items()
        for method, described in methods.items()
    ]
    for name, schema in api["components"]["schemas"].items():
        absent = {each for each in schema.get("properties", ()) if each not in schema.get("required", ())}
        if absent and any(hasattr(module, OWN.get(name, name)) for module in (answers, status)):
            fields = [f"{each}{'?' * (each in absent)} {_type(of)}" for each, of in schema["properties"].items()]
            said.append(f"{name}: {', '.join(fields)}")
    assert said == Path(__file__).with_name("documented.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(autouse=True)
def place_for_names(request: pytest.FixtureRequest) -> None:
    # Schemathesis names the operation at hand where pytest kept the test's name before 9.2; the report has its own.
    request.node._nodeid = request.node.nodeid


@pytest.fixture(scope="module")
def to_everybody(models: Path) -> BaseSchema:
    return described(models, 2)


def path_names(operation: Any) -> list[str]:
    return re.findall(r"{(\w+)}", operation.path)


def is_open(operation: Any) -> bool:
    """Whether anybody may ask this, and as often as they like."""
    return operation.path in OPEN


@schemathesis.pytest.from_fixture("to_everybody").parametrize()
def test_every_answer_is_as_described(case: schemathesis.Case) -> None:
    case.call_and_validate()


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"api_keys": let_in(KEY)}, 401),  # the key is known to none but who asks for the description
        ({"rate_limit": "1/hour"}, 429),  # the one question of this hour was the one for the description
    ],
)
def test_every_refusal_is_as_described_whatever_was_asked(
    models: Path, settings: dict[str, object], status: int
) -> None:
    schema = described(models, 1, **settings)
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        response = operation.Case(path_parameters=dict.fromkeys(path_names(operation), "any")).call()
        assert (response.status_code == status) == (not is_open(operation)), operation.label
        if response.status_code == status:
            operation.validate_response(response)
            asked += 1
    assert asked > len(GOOD)
