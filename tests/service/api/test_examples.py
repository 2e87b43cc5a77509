"""What /docs shows works: every example is sent as it stands, to the published models."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from tests import fakes
from tests.service.conftest import Serve

MODELS = Path(__file__).parents[3] / "models"
SHOWN = ("avg-paraphrase", "avg-sick", "minilm", "pwim-general", "sentiment")  # what answers by itself, and is named
NEEDS_VERSIONS = {f"/v2/models/{{model}}/versions/{{version}}{what}" for what in ("", "/ready", "/infer")}


def shown(parameters: list[dict[str, Any]]) -> dict[str, str]:
    """The examples of parameters by name."""
    return {each["name"]: each["examples"]["served"]["value"] for each in parameters}


@pytest.mark.artifacts
def test_every_example_is_answered() -> None:
    with TestClient(create_app(Settings(models_dir=MODELS, models=SHOWN, preload=("all",)))) as client:
        api = client.get("/openapi.json").json()
        asked = set()
        for path, operations in api["paths"].items():
            for method, operation in operations.items():
                if path in NEEDS_VERSIONS:  # the published models have none
                    assert all("examples" not in parameter for parameter in operation["parameters"])
                    continue
                names = {
                    p["name"]: p["examples"]["served"]["value"]
                    for p in operation.get("parameters", ())
                    if p["in"] == "path"
                }
                body = operation.get("requestBody", {"content": {"application/json": {}}})["content"][
                    "application/json"
                ]
                examples = body.get("examples", {"": {"value": None}})
                assert examples, path
                for example in examples.values():
                    answer = client.request(method, path.format(**names), json=example["value"])
                    assert answer.status_code == 200, (method, path, example, answer.text)
                    asked.add((method, path))
    operations_shown = {(m, p) for p, methods in api["paths"].items() for m in methods if p not in NEEDS_VERSIONS}
    assert asked == operations_shown
    assert len(asked) > 25


@pytest.mark.anyio
async def test_a_version_that_is_served_is_the_example(tmp_path: Path, serve: Serve) -> None:
    fakes.graded_model(tmp_path / "avg-sick")
    fakes.cosine_model(tmp_path / "avg-paraphrase" / "3", "avg-paraphrase")
    async with serve(models_dir=tmp_path) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        for path in NEEDS_VERSIONS:
            ((method, operation),) = paths[path].items()
            names = {
                parameter["name"]: parameter["examples"]["served"]["value"] for parameter in operation["parameters"]
            }
            assert names == {"model": "avg-paraphrase", "version": "3"}
            content = operation.get("requestBody", {"content": {"application/json": {}}})["content"]["application/json"]
            for example in content.get("examples", {"": {"value": None}}).values():
                response = await client.request(method, path.format(**names), json=example["value"])
                assert response.status_code == 200
