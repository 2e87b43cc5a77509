"""Every route, our own and every dialect's, against its own description: no 5xx, and nothing that it does not say.

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

from service.app import create_app
from service.settings import Settings
from tests.harness.effort import EFFORT
from tests.harness.requests import GOOD, OPEN
from tests.harness.service import let_in

KEY = "correct horse battery"
pytestmark = pytest.mark.timeout(600)  # half a minute, where nobody else wants the machine


def described(models: Path, examples: int, **settings: object) -> BaseSchema:
    """A service's own description, with so many made-up requests for each of its operations."""
    app = create_app(Settings(models_dir=models, **settings))  # type: ignore[arg-type]
    options: dict[str, Any] = {
        "generation": {"max-examples": examples * EFFORT, "deterministic": EFFORT == 1},
        # A text that says nothing, or a model that is not there, fits the description and is refused all the same.
        "checks": {"positive_data_acceptance": {"enabled": False}},
        "warnings": False,
    }
    config = SchemathesisConfig.from_dict(options)
    return from_asgi("/openapi.json", app, config=config, headers={"Authorization": f"Bearer {KEY}"})


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
    return operation.path in OPEN or (operation.method.upper(), operation.path) == ("GET", "/")


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
