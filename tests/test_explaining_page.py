"""The example of docs/explaining.md is sent to the published model, and must answer as printed."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from tests.test_readme import ROOT, close

PAGE = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")


ROWS = re.findall(r"^\| .*?\((`.*?)\) \| (.*?) \| (.*?) \|$", PAGE, flags=re.MULTILINE)
LISTED = {name: row for row in ROWS for name in re.findall(r"`([a-z0-9-]+)`", row[0])}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """The models that the page lists."""
    with TestClient(
        create_app(Settings(models_dir=ROOT / "models", models=tuple(sorted(LISTED)), preload=("all",)))
    ) as opened:
        yield opened


@pytest.mark.artifacts
def test_the_example_answers_as_printed(client: TestClient) -> None:
    found = re.search(r"```sh\n(curl .*?)\n```\n+```json\n(.*?)\n```", PAGE, flags=re.DOTALL)
    assert found is not None
    _, url, *_, body = shlex.split(found[1])
    answer = client.post(Path(url).name, content=body).json()
    assert close(answer, json.loads(found[2])), json.dumps(answer)


@pytest.mark.artifacts
def test_the_table_of_models_is_that_of_the_service(client: TestClient) -> None:
    described = {model["id"]: model["explanations"] for model in client.get("/models").json()["models"]}
    assert LISTED
    for name, (_, matrices, vectors) in LISTED.items():
        shown = {"matrices": re.findall(r"`(\w+)`", matrices), "vectors": re.findall(r"`(\w+)`", vectors)}
        assert described[name] == shown
