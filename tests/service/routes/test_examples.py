"""What /docs shows works: every example is sent as it stands, to the published models."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings

MODELS = Path(__file__).parents[3] / "models"
SHOWN = ("avg-paraphrase", "avg-sick", "minilm", "minilm-cross", "sentiment")  # what answers by itself, and is named


@pytest.mark.artifacts
def test_every_example_is_answered() -> None:
    with TestClient(create_app(Settings(models_dir=MODELS, models=SHOWN, preload=("all",)))) as client:
        api = client.get("/openapi.json").json()
        schemas, asked = api["components"]["schemas"], set()
        for path, operations in api["paths"].items():
            for method, operation in operations.items():
                body = operation.get("requestBody", {}).get("content", {}).get("application/json")
                request = schemas[body["schema"]["$ref"].rpartition("/")[2]] if body else {"examples": [None]}
                assert request["examples"], path
                for example in request["examples"]:
                    answer = client.request(method, path.format(model="minilm"), json=example)
                    assert answer.status_code == 200, (method, path, example, answer.text)
                    asked.add((method, path))
    assert asked == {(method, path) for path, methods in api["paths"].items() for method in methods}
    assert len(asked) > 25
