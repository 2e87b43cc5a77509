"""What the README and two pages show: their curl examples must answer as printed, and the README stays short."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.models.defaults import USUAL
from service.settings import Settings
from tests.harness.printed import close, decimals

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = [
    example
    for page in ("README.md", "docs/labels.md", "docs/explaining.md")
    for example in re.findall(
        r"```sh\n(curl .*?)\n```\n+```json\n(.*?)\n```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL
    )
]
EXPLAINING = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")


def test_what_the_readme_points_at_is_there() -> None:
    found = re.findall(r"\]\(([^)#]+)", README)
    assert len(found) > 20
    # The picture of the playground comes with the playground.
    pending = set() if (ROOT / "service/playground").is_dir() else {"docs/images/playground-compare.png"}
    assert {target for target in found if not (ROOT / target).exists()} <= pending


def test_pages_can_be_read_in_an_editor() -> None:
    assert len(README.splitlines()) <= 120
    wide = []
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        is_code = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            is_code ^= line.lstrip().startswith("```")
            if len(line) > 160 and not is_code and not line.lstrip().startswith("|"):  # a row of a table is one line
                wide.append(f"{path.relative_to(ROOT)}:{number}")
    assert wide == []


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """All published models, those opened at the start that the examples name."""
    named = {name for command, _ in EXAMPLES for name in re.findall(r'model": "([a-z-]+)"', command)}
    named |= {names[0] for names in USUAL.values()}
    with TestClient(create_app(Settings(models_dir=ROOT / "models", preload=tuple(sorted(named))))) as opened:
        yield opened


@pytest.mark.artifacts
@pytest.mark.parametrize(("command", "answer"), EXAMPLES, ids=["rank", "labels", "explain"])
def test_an_example_answers_as_printed(client: TestClient, command: str, answer: str) -> None:
    _, *arguments = shlex.split(command.replace("\\\n", " "))
    url = next(a for a in arguments if a.startswith("127.0.0.1:8000"))
    body = arguments[arguments.index("-d") + 1]
    found = client.post(url.removeprefix("127.0.0.1:8000"), content=body).json()
    assert close(found, decimals(answer)), json.dumps(found)


@pytest.mark.artifacts
def test_the_models_with_contributions_are_those_of_the_page(client: TestClient) -> None:
    shown = re.findall(r"`([a-z0-9-]+)`", re.findall(r"with cosine\s+\((.*?)\)", EXPLAINING, flags=re.DOTALL)[0])
    described = {model["id"]: model["explanations"] for model in client.get("/models").json()["models"]}
    assert sorted(shown) == sorted(name for name, lists in described.items() if "contributions" in lists["vectors"])
    assert all("deletion" in lists["vectors"] for lists in described.values() if lists["vectors"])
