"""The tutorial is followed: each command runs as it is printed, but for the port and the environment."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.test_readme import close, decimals

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
_NUMBER = re.compile(r"(\d+\.\d+)")
STEPS = re.findall(r"^```sh\n(.*?)^```(?:\n+```(?:json|text)\n(.*?)^```)?", PAGE, flags=re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.artifacts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's checkout: what one step writes, the next one reads."""
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / "models").symlink_to(ROOT / "models")
    tools = checkout / ".venv-serve" / "bin"
    tools.mkdir(parents=True)
    command = tools / "semblance"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m semblance "$@"\n')
    command.chmod(0o755)
    return checkout


def test_the_first_step_is_the_service_and_the_last_the_container() -> None:
    serve, *_, container = STEPS
    assert serve == ("make serve\n", "")
    done = subprocess.run(["make", "-n", "serve"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "-m service" in done.stdout
    assert len(STEPS) == 5
    subprocess.run(["bash", "-n"], input=container[0], text=True, check=True)
    assert [line.split()[0] for line in container[0].splitlines()] == ["docker", "curl", "docker"]
    (port,) = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["api"]["ports"]
    assert port == "127.0.0.1:${API_PORT:-8000}:8000"


@pytest.mark.parametrize("step", [1, 2, 3], ids=["ask", "threshold", "batch"])
def test_a_step_prints_what_it_says(step: int, published: str, folder: Path) -> None:
    script, printed = STEPS[step]
    if "curl " in script and shutil.which("curl") is None:
        pytest.skip("the tutorial asks with curl: install curl")
    script = script.replace("http://127.0.0.1:8000", published).replace("127.0.0.1:8000", published)
    done = subprocess.run(["bash", "-eu"], cwd=folder, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if step == 1:
        assert close(json.loads(done.stdout), decimals(printed)), done.stdout
        return
    said, shown = _NUMBER.split(done.stderr + done.stdout), _NUMBER.split(printed)
    assert [part.split() for part in said[::2]] == [part.split() for part in shown[::2]]
    # The last digits of a score hang on the other texts of its batch.
    assert list(map(float, said[1::2])) == pytest.approx(list(map(float, shown[1::2])), abs=2e-4)
